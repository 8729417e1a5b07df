// What the pages do beside what they do without scripts:
//
// - <form data-in-place> is sent without leaving the page. A refusal appears as a sentence beneath the form; otherwise
//   the page that the answer leads to is loaded, unless it is this one and follows changes by itself (<main data-topic>).
// - A form that came without its token, since many see the same piece, is given the one of the page.
// - Who logs out, by <form data-leaves>, in one tab is logged out in all: each is loaded again, which ends its stream and
//   its console.
// - <form data-send-now> is sent as soon as the page is there.
// - Escape closes a question that was opened.
"use strict";

(() => {
  const token = () => document.querySelector('meta[name="csrf"]')?.content ?? "";

  const say = (form, html) => {
    form.querySelector(":scope > .answer")?.remove();
    const answer = document.createElement("div");
    answer.className = "answer";
    answer.innerHTML = html;
    form.append(answer);
  };

  const words = (text) => {
    const paragraph = document.createElement("p");
    paragraph.className = "refusal";
    paragraph.setAttribute("role", "alert");
    paragraph.textContent = text;
    return paragraph.outerHTML;
  };

  const leaving = document.querySelector("form[data-leaves]");
  const tabs = leaving && new BroadcastChannel(`left ${leaving.action}`);
  if (tabs && window === window.top) tabs.onmessage = () => location.reload();

  const sending = new WeakSet();

  const send = async (form, button) => {
    if (sending.has(form)) return;
    sending.add(form);
    const data = new FormData(form, button);
    try {
      const answer = await fetch(button?.hasAttribute("formaction") ? button.formAction : form.action, {
        method: "POST",
        body: form.enctype === "multipart/form-data" ? data : new URLSearchParams(data),
        headers: { "X-Piece": "1" },
      });
      const there = answer.headers.get("X-Location");
      if (answer.ok && form === leaving) tabs.postMessage("");
      if (!answer.ok) {
        const text = await answer.text();
        say(form, text.startsWith('<p class="refusal"') ? text : words(`The portal did not answer (${answer.status}); try again.`));
      } else if (!there) {
        location.reload();
      } else if (document.querySelector("main[data-topic]") && new URL(there, location).pathname === location.pathname) {
        form.querySelector(":scope > .answer")?.remove();
        (button ?? form).closest("details.confirm")?.removeAttribute("open");
      } else {
        location.assign(there);
      }
    } catch {
      say(form, words("The portal did not answer. Nothing may have happened; try again."));
    } finally {
      sending.delete(form);
    }
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    const field = form.querySelector('input[name="csrf"]');
    if (field && !field.value) field.value = token();
    if (form.hasAttribute("data-in-place")) {
      event.preventDefault();
      send(form, event.submitter);
    }
  });

  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.activeElement?.closest("details.confirm[open]");
    if (open) {
      open.removeAttribute("open");
      open.querySelector("summary").focus();
    }
  });

  document.querySelector("form[data-send-now]")?.requestSubmit();
})();
