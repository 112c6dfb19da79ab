// @ts-check

/** What somebody can do who may not watch: open an invitation, or make one if the server is theirs. */

import { h, setText } from "../dom.js";
import { claimsOf, knownToken } from "../tokens.js";

/** @returns {[title: string, hint: string]} */
export function wordsForUninvited() {
  return knownToken("*", "viewer") !== null
    ? ["This invitation is not valid any more.", "Ask whoever sent it for a new one, and open it or paste it here."]
    : ["You need an invitation to watch.", "To watch, or to go live, open the link that you were sent, or paste it here."];
}

/**
 * Where an invitation leads that somebody pasted.
 * @param {string} text a link of this server, or a token alone
 * @returns {string | null} null for what is neither
 */
export function addressOf(text) {
  const given = text.trim();
  const { role, stream } = claimsOf(given) ?? {};
  if (role) {
    const page = stream && stream !== "*" ? `/${role === "viewer" ? "watch" : "live"}/${encodeURIComponent(stream)}` : "/";
    return `${page}#token=${encodeURIComponent(given)}`;
  }
  // People leave out what every address begins with.
  const link = /^https?:/i.test(given) ? given : `${location.protocol}//${given}`;
  if (!URL.canParse(link)) return null;
  const { host, pathname, search, hash } = new URL(link);
  // With the origin, because a path may begin with two slashes, which alone would be another host's address.
  return host === location.host ? `${location.origin}${pathname}${search}${hash}` : null;
}

/** A place to paste an invitation, and a word to whoever runs the server. */
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
      setText(problem, address ? "" : "That is no invitation to this server.");
      if (!address) return field.focus();
      location.assign(address);
      // Where nothing but the token is another one, the page stays.
      if (new URL(address, location.href).pathname === location.pathname) location.reload();
    },
  }, h("div.row", {}, field, h("button.button.primary", {}, "Open")), problem);
  const command = `rostrum token --role host --stream my-show --link ${location.origin}`;
  return [form, h("p.small", {}, "Is this your server? Make a link with ", h("code", {}, command), ".")];
}
