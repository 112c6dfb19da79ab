// @ts-check

/** A card over the picture, whose link opens in a new tab, and the form with which the host shows it. */

import { makeAudienceAction } from "./audience-action.js";
import { follow, h, setText } from "./dom.js";
import { askAndSave } from "./saving.js";

/**
 * @typedef {object} Card
 * @property {string} title
 * @property {string} link
 * @property {string | null} [picture]
 * @property {unknown} [data] of the app
 */

/** @param {import("./talk.js").Part} part */
export function makeCard({ audience, shows }) {
  const title = h("b", { dir: "auto" });
  const site = h("small", { dir: "ltr" });
  const picture = h("img", { alt: "", referrerPolicy: "no-referrer", onerror: () => (picture.hidden = true) });
  const root = h("a.stream-card", { target: "_blank", rel: "noopener noreferrer", hidden: true }, picture, h("span", {}, title, site));
  /** @type {Card | null} */
  let shown = null;
  const unfollow = follow(audience, () => {
    const { card } = audience;
    root.hidden = !card || !audience.isOpen || !shows("card");
    if (!card || card === shown) return;
    shown = card;
    root.href = card.link;
    setText(title, card.title);
    setText(site, URL.canParse(card.link) ? new URL(card.link).host : card.link);
    picture.hidden = !card.picture;
    if (card.picture) picture.src = card.picture;
  });
  return {
    root,
    stop() {
      unfollow();
      root.remove();
    },
  };
}

/** A button with which a host shows a card, or removes it. @param {import("./talk.js").Part} part */
export function makeShowing(part) {
  return makeAudienceAction(part, "show-card", "Card…", editCard);
}

/** @param {import("./talk.js").Part} part */
async function editCard({ audience }) {
  const { card } = audience;
  const title = h("input", { type: "text", name: "title", dir: "auto", maxLength: 100, value: card?.title ?? "" });
  const link = h("input", { type: "url", name: "link", maxLength: 500, placeholder: "https://", value: card?.link ?? "" });
  const picture = h("input", { type: "text", inputMode: "url", name: "picture", maxLength: 500, placeholder: "https://", value: card?.picture ?? "" });
  await askAndSave({
    name: "card", title: "Show a card", text: "Everyone sees it and can open its link.",
    body: [h("div.fields", {},
      h("label", {}, "Title", title), h("label", {}, "Link", link), h("label", {}, "Picture (optional)", picture))],
    choices: [
      { value: "show", label: "Show", look: "primary" },
      ...card ? [{ value: "remove", label: "Remove card", look: /** @type {const} */ ("danger") }] : [],
      { value: "no", label: "Cancel" },
    ],
  }, async (answer) => {
    if (answer === "remove") await audience.api.removeCard();
    else {
      await audience.api.showCard({
        title: title.value, link: link.value.trim(), picture: picture.value.trim() || null,
        // The app's data belongs to the link.
        data: card?.link === link.value.trim() ? card.data : null,
      });
    }
  });
}
