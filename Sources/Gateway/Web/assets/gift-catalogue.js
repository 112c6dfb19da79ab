// @ts-check

/** The form with the gifts of a stream. The app's shop sells them; here the host only says which there are. */

import { makeAudienceAction } from "./audience-action.js";
import { h } from "./dom.js";
import { fractionDigits } from "./money.js";
import { askAndSave } from "./saving.js";

/**
 * @typedef {import("./gifts.js").GiftKind} GiftKind
 * @typedef {import("./gifts.js").GiftCatalogue} GiftCatalogue
 */

/** Most kinds of gifts that a stream can have. */
const MOST_KINDS = 30;
/** Highest price, in the smallest unit of the currency. */
const HIGHEST_PRICE = 100_000_000;
/** The first suggestion. @type {GiftCatalogue} */
const FIRST = { currency: "EUR", kinds: [{ id: "rose", name: "Rose", picture: "🌹", price: 100 }] };

/** The button that opens the form. @param {import("./talk.js").Part} part */
export function makeCatalogue(part) {
  return makeAudienceAction(part, "edit-gifts", "Gifts…", editCatalogue);
}

/**
 * An id for a new kind; it stays the same when the name changes.
 * @param {string} name @param {Set<string>} taken
 */
export function giftId(name, taken) {
  const base = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 28) || "gift";
  let id = base;
  for (let number = 2; taken.has(id); number += 1) id = `${base}-${number}`;
  return id;
}

/** What the server would refuse, in words for the host; null if nothing. @param {GiftCatalogue} catalogue */
export function troubleWith({ currency, kinds }) {
  if (!/^[A-Z]{1,8}$/.test(currency)) return "A currency has one to eight letters, such as EUR or COINS.";
  const most = new Intl.NumberFormat().format(HIGHEST_PRICE / 10 ** fractionDigits(currency));
  for (const { name, picture, price } of kinds) {
    if (!/^(https:\/\/|\/(?!\/))/.test(picture) && !/^[^\x00-\x7f]+$/.test(picture)) {
      return `The picture for ${name} must be an emoji or an address that starts with https://.`;
    }
    if (!(price >= 0 && price <= HIGHEST_PRICE)) return `The price of ${name} must be between 0 and ${most}.`;
  }
  return null;
}

/** One row of the form. @param {GiftKind | null} kind @param {string} currency */
function makeRow(kind, currency) {
  const scale = 10 ** fractionDigits(currency);
  const picture = h("input", { type: "text", name: "picture", maxLength: 300, value: kind?.picture ?? "🎁", "aria-label": "Picture: emoji or address" });
  const name = h("input", { type: "text", name: "name", dir: "auto", maxLength: 30, value: kind?.name ?? "", placeholder: "Name", "aria-label": "Name" });
  const price = h("input", {
    type: "number", name: "price", min: 0, step: 1 / scale, inputMode: "decimal", value: kind ? kind.price / scale : "",
    placeholder: "Price", "aria-label": "Price each",
  });
  const row = h("li", {}, picture, name, price);
  row.append(h("button.button.small.round", { type: "button", "aria-label": "Remove this gift", onclick: () => row.remove() }, "✕"));
  row.fields = { id: kind?.id ?? null, picture, name, price };
  return row;
}

/** @param {import("./talk.js").Part} part */
async function editCatalogue({ audience, say }) {
  const before = audience.settings?.gifts ?? null;
  const start = before?.kinds.length ? before : FIRST;
  const currency = h("input", {
    type: "text", name: "currency", maxLength: 8, value: start.currency, autocapitalize: "characters",
    oninput: () => (currency.value = currency.value.toUpperCase()),
  });
  const list = h("ul.gift-kinds", {}, ...start.kinds.map((kind) => makeRow(kind, start.currency)));
  const add = h("button.button.small", {
    type: "button",
    onclick: () => {
      if (list.children.length >= MOST_KINDS) return say(`A stream can have up to ${MOST_KINDS} gifts.`);
      list.append(makeRow(null, currency.value));
      list.lastElementChild?.querySelector("[name=name]")?.focus();
    },
  }, "Add a gift");
  await askAndSave({
    name: "gifts", title: "Gifts", text: "Gifts that can appear in the stream. Your shop sells them and reports each sale here.",
    body: [h("div.fields", {}, h("label", {}, "Currency: EUR, USD or your own coins", currency)), list, add],
    choices: [
      { value: "save", label: "Save", look: "primary" },
      ...before?.kinds.length ? [{ value: "none", label: "Remove all", look: /** @type {const} */ ("danger") }] : [],
      { value: "no", label: "Cancel" },
    ],
  }, async (answer) => {
    const scale = 10 ** fractionDigits(currency.value);
    const rows = [...list.children].map(({ fields }) => fields).filter(({ name }) => name.value.trim());
    const taken = new Set(rows.flatMap(({ id }) => id ?? []));
    const kinds = answer === "none" ? [] : rows.map(({ id, name, picture, price }) => {
      const known = id ?? giftId(name.value, taken);
      taken.add(known);
      return {
        id: known, name: name.value.trim(), picture: picture.value.trim() || "🎁",
        price: Math.round(Number(price.value) * scale),
      };
    });
    const catalogue = { currency: currency.value.trim() || FIRST.currency, kinds };
    const trouble = troubleWith(catalogue);
    if (!trouble) await audience.api.editInteraction({ gifts: catalogue });
    return trouble;
  });
}
