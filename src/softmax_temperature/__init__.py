"""The temperature of the softmax: four papers rebuilt by one pipeline, and their methods as a library."""
