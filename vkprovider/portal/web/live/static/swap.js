// Makes elements of a page look as the portal has rendered them by now. Nodes that stay are changed, not replaced: they keep
// focus and selection, what was typed, opened or ticked, and whatever has `data-live-keep`, such as a console. What a person
// may open, press or tick has an id, so that it never becomes another of its kind under their hand. Once a lab is another
// learner's, its row is no longer ticked, and the questions that were open on its page are closed.
"use strict";

(() => {
  /** @param {Node} node @returns {boolean} whether the stream leaves it alone */
  const kept = (node) => node instanceof Element && (node.hasAttribute("data-live-keep") || node.classList.contains("answer"));

  const PERSONAL = new Set(["open", "value", "checked", "selected"]);
  const TICKS = "input[type=checkbox], input[type=radio]";
  const QUESTIONS = "details.confirm[open]";
  /** @param {Element} element @param {string} name @returns {boolean} whether a person sets that attribute of it */
  const personal = (element, name) =>
    PERSONAL.has(name) && element.matches("input:not([type=hidden]), option, details, dialog") &&
    !(name === "value" && element.matches(TICKS));

  /** @param {Node} node @returns {string} */
  const idOf = (node) => (node instanceof Element ? node.id : "");

  /** @param {Node} old @param {Node} now */
  const morph = (old, now) => {
    if (!(old instanceof Element) || !(now instanceof Element)) {
      if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue;
      return;
    }
    if (kept(old) || old.isEqualNode(now)) return;
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && !personal(old, name)) old.removeAttribute(name);
    }
    for (const { name, value } of now.attributes) {
      if (old.getAttribute(name) === value || personal(old, name)) continue;
      old.setAttribute(name, value);
      if (name !== "value") continue;
      if (old.matches(TICKS)) /** @type {HTMLInputElement} */ (old).checked = false;
      if (old.id === "act-learner") for (const open of document.querySelectorAll(QUESTIONS)) open.removeAttribute("open");
    }
    if (!old.matches("textarea, time[data-until], time[data-clock]")) morphChildren(old, now);
  };

  /** @param {Element} old @param {Element} now */
  const morphChildren = (old, now) => {
    const named = new Map([...old.children].filter(idOf).map((child) => [child.id, child]));
    let at = old.firstChild;
    for (const child of [...now.childNodes]) {
      const id = idOf(child);
      const same = id ? named.get(id) : at && !idOf(at) && !kept(at) ? at : null;
      if (!same || same.nodeName !== child.nodeName) {
        old.insertBefore(child, at);
      } else {
        if (same === at) at = at.nextSibling;
        else old.insertBefore(same, at);
        morph(same, child);
      }
    }
    for (let next; at; at = next) {
      next = at.nextSibling;
      if (!kept(at)) at.remove();
    }
  };

  /** @param {string} html @returns {Element} the one element that it describes */
  const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html.trim();
    return /** @type {Element} */ (template.content.firstElementChild);
  };

  /** @param {string} id @param {string} html @returns {Element | null} the element, if the page has it */
  const show = (id, html) => {
    const old = document.getElementById(id);
    const now = old && !kept(old) ? parsed(html) : null;
    if (old && now && old.nodeName === now.nodeName) morph(old, now);
    else if (old && now) old.replaceWith(now);
    return document.getElementById(id);
  };

  /** @param {string} id of the element that holds the list @param {string[][]} put @param {string[]} gone
   * @param {boolean} all whether `put` is the whole list */
  const showList = (id, put, gone, all) => {
    const parent = document.getElementById(id);
    if (!parent) return;
    const there = new Set(put.map(([key]) => key));
    const absent = new Set(gone);
    for (const child of [...parent.children]) if (absent.has(child.id) || (all && !there.has(child.id))) child.remove();
    for (const [key, html, after] of put) {
      const child = show(key, html) ?? parsed(html);
      const next = after ? document.getElementById(after)?.nextElementSibling ?? null : parent.firstElementChild;
      if (child.parentElement !== parent || next !== child) parent.insertBefore(child, next);
    }
  };

  /** Show a change, as the portal sends it: see live/frames.py.
   * @param {{from: string, elements: Object<string, string>, lists: Object<string, {put?: string[][], gone?: string[]}>}} change */
  globalThis.showChange = (change) => {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    for (const [id, html] of Object.entries(change.elements)) show(id, html);
    for (const [id, { put = [], gone = [] }] of Object.entries(change.lists)) showList(id, put, gone, !change.from);
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
    document.dispatchEvent(new CustomEvent("live:changed"));
  };
})();
