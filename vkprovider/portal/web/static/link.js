// The page of a link: what stands behind # goes into the form, and is posted after a click, for no browser sends it by itself.
"use strict";

(() => {
  const form = document.getElementById("link-form");
  const code = document.getElementById("link-code");
  const typed = document.getElementById("link-typed");
  const ready = document.getElementById("link-ready");

  /** Take the code out of the address; without one it is typed. */
  const read = () => {
    const found = location.hash.slice(1);
    if (found) code.value = found;
    typed.hidden = Boolean(found);
    ready.hidden = !found;
  };

  form.addEventListener("submit", () => {
    // Neither the history nor a bookmark of the next page has the code.
    if (location.hash) history.replaceState(null, "", location.pathname);
  });
  window.addEventListener("hashchange", read);
  read();
})();
