// A link to an element inside a closed <details> opens the <details>.
"use strict";
const open = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = target && target.closest("details");
  if (part) part.open = true;
};
addEventListener("hashchange", open);
open();
