"""Nodes of a Ray cluster, apart from the process of the tests; they end with their standard input.

`python ray_nodes.py` starts a head that runs no cells and two nodes for one cell each, prints the head's address, and
obeys the lines "kill a node" and "kill the head". `python ray_nodes.py HEAD` adds a node with a GPU, which Ray merely
counts, and prints "ready".
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS = 240
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's own deadlines, after which it gives up a node that starts, are too short for a busy machine.
    "RAY_agent_register_timeout_ms": str(1000 * SECONDS),
    "RAY_raylet_start_wait_time_s": str(SECONDS),
    "RAY_worker_register_timeout_seconds": str(SECONDS),
}


# What no test looks at costs seconds of start-up.
LESS = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
NO_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")


def start_slowly_and_little(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """What no setting says: no dashboard at all, and time enough for a node to start on a busy machine.

    Args:
        replace: an attribute of one of Ray's objects.
    """
    from ray._private import services
    from ray._private.node import Node

    replace(Node, "start_api_server", lambda *_, **__: None)
    known_start, known_look, deadline = Node.start_raylet, services.get_node, time.monotonic() + SECONDS

    def start_raylet(node: Any, *arguments: Any) -> None:
        # A node waits 15 seconds for each of its helpers to say its port, or -1 for none: these helpers have none.
        with socket.socket() as free:
            bind(free)
            node._ray_params.runtime_env_agent_port = free.getsockname()[1]
        ports = dict.fromkeys(NO_PORTS, -1) | {"runtime_env_agent_port": node._ray_params.runtime_env_agent_port}
        for name, port in ports.items():
            Path(node.get_session_dir_path(), f"{name}_{node._node_id}").write_text(str(port))
        known_start(node, *arguments)

    def get_node(*arguments: Any) -> Any:
        while True:
            try:
                return known_look(*arguments)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise

    replace(Node, "start_raylet", start_raylet)
    replace(services, "get_node", get_node)


def bind(free: socket.socket) -> None:
    """To a port below those that systems give to whoever asks for any, so that nobody is given it meanwhile."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError):
            free.bind(("", port))
            return
    raise OSError("no port is free")


def answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def head_and_two_nodes() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **LESS})
    for _ in range(2):
        cluster.add_node(num_cpus=1, **LESS)
    answer(cluster.address)
    for line in sys.stdin:
        if line == "kill a node\n":
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        if line == "kill the head\n":
            cluster.head_node.kill_gcs_server()
        answer("done")
    cluster.shutdown()


def another_node(head: str) -> None:
    from ray._private.node import Node
    from ray._private.parameter import RayParams

    has = {"num_cpus": 2, "num_gpus": 1, "object_store_memory": 150 * 2**20, **LESS}
    node = Node(RayParams(gcs_address=head, min_worker_port=0, max_worker_port=0, **has), head=False)
    answer("ready")
    sys.stdin.read()
    node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)


if __name__ == "__main__":
    os.environ |= SETTINGS
    start_slowly_and_little()
    if sys.argv[1:]:
        another_node(sys.argv[1])
    else:
        head_and_two_nodes()
