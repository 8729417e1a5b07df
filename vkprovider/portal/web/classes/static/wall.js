// Opens the consoles of a wall that are in sight, and closes those that are not, or when the page is hidden. A portal
// serves one person 24 consoles at a time; some are left for other tabs.
"use strict";

(() => {
  const OPEN_MAX = 18;
  const frames = [...document.querySelectorAll(".wall iframe")];
  const seen = new Set();

  const show = (frame, wanted) => {
    if (wanted === "open" in frame.dataset) return;
    // An address that is replaced adds nothing to the history of the page.
    frame.contentWindow.location.replace(wanted ? new URL(frame.dataset.src, location.href) : "about:blank");
    if (wanted) frame.dataset.open = "";
    else delete frame.dataset.open;
  };

  const settle = () => {
    const wanted = document.hidden ? [] : frames.filter((frame) => seen.has(frame)).slice(0, OPEN_MAX);
    for (const frame of frames) if (!wanted.includes(frame)) show(frame, false);
    for (const frame of wanted) show(frame, true);
  };

  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) seen.add(target);
      else seen.delete(target);
    }
    settle();
  });
  for (const frame of frames) observer.observe(frame);
  document.addEventListener("visibilitychange", settle);
})();
