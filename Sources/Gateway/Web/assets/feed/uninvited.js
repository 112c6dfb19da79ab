// @ts-check

/** For people without access: a field to open an invitation, and how to make one for people who run the server. */

import { h, setText } from "../dom.js";
import { claimsOf, knownToken } from "../tokens.js";

/** @returns {[title: string, hint: string]} */
export function wordsForUninvited() {
  return knownToken("*", "viewer") !== null
    ? ["This invitation is no longer valid.", "Ask the person who sent it for a new one, then open it or paste it here."]
    : ["You need an invitation to watch.", "To watch or go live, open the link you were sent, or paste it here."];
}

/**
 * Where a pasted invitation leads.
 * @param {string} text a link of this server, or a token alone
 * @returns {string | null} null if it is neither
 */
export function addressOf(text) {
  const given = text.trim();
  const { role, stream } = claimsOf(given) ?? {};
  if (role) {
    const page = stream && stream !== "*" ? `/${role === "viewer" ? "watch" : "live"}/${encodeURIComponent(stream)}` : "/";
    return `${page}#token=${encodeURIComponent(given)}`;
  }
  // People often leave out the scheme.
  const link = /^https?:/i.test(given) ? given : `${location.protocol}//${given}`;
  if (!URL.canParse(link)) return null;
  const { host, pathname, search, hash } = new URL(link);
  // With the origin, because a path that begins with two slashes would be the address of another host.
  return host === location.host ? `${location.origin}${pathname}${search}${hash}` : null;
}

/** A field to paste an invitation into, and a hint for the server's operator. */
export function uninvitedForm() {
  const problem = h("p.problem#invitation-problem", { role: "status" });
  const field = h("input#invitation", {
    type: "text", name: "invitation", autocomplete: "off", spellcheck: false, "aria-label": "Invitation",
    "aria-describedby": "invitation-problem", placeholder: `${location.host}/watch/…`,
  });
  const form = h("form.invitation", {
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      const address = addressOf(field.value);
      setText(problem, address ? "" : "That isn’t an invitation to this server.");
      if (!address) return field.focus();
      const { pathname, search } = new URL(address, location.href);
      location.assign(address);
      // If only the token differs, the page stays open. Elsewhere, loading it again would lead back here.
      if (pathname === location.pathname && search === location.search) location.reload();
    },
  }, h("div.row", {}, field, h("button.button.primary", {}, "Open")), problem);
  const command = `rostrum token --role host --stream my-show --link ${location.origin}`;
  return [form, h("p.small", {}, "Is this your server? Make a link with ", h("code", {}, command), ".")];
}
