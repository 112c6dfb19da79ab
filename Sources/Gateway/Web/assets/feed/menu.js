// @ts-check

/** The menu: everyone who is live, and how to go live oneself. */

import { closeBeside } from "../dialog.js";
import { $, formatViewers, h, reconcile, setText } from "../dom.js";
import { decodeBlurHash, isBlurHash } from "./blurhash.js";
import { paintCard, titleOf } from "./side.js";

const ADJECTIVES = "amber bright calm clear golden lively mellow quiet silver sunny swift velvet".split(" ");
const NOUNS = "aurora breeze cedar comet finch harbor lantern maple otter river sparrow tide".split(" ");

/** A name for a stream that is easy to say and unlikely to be taken. */
function suggestName() {
  const [a, b, c] = crypto.getRandomValues(new Uint32Array(3));
  return `${ADJECTIVES[a % ADJECTIVES.length]}-${NOUNS[b % NOUNS.length]}-${c % 90 + 10}`;
}

/** The address of the studio for a new stream. */
export const studio = `/live/${suggestName()}`;

/**
 * @param {import("../story-feed.js").StoryFeed} feed
 * @returns {{ open: () => void }}
 */
export function makeMenu(feed) {
  const dialog = /** @type {HTMLDialogElement} */ ($("menu"));
  $("go-live").href = studio;

  /** @param {string} id */
  const make = (id) => {
    const canvas = h("canvas", { width: 18, height: 32 });
    const picture = h("img", { alt: "", loading: "lazy", hidden: true, onload: () => (picture.hidden = false) });
    const title = h("span.title", { dir: "auto" });
    const host = h("span.host", { dir: "auto" });
    const viewers = h("span.chip");
    const link = h("a", {
      href: `/?stream=${encodeURIComponent(id)}${location.hash}`,
      onclick: (/** @type {MouseEvent} */ event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || !feed.go(id)) return;
        event.preventDefault();
        dialog.close();
      },
    }, canvas, picture, viewers, h("span.words", {}, title, host));
    let hash = "";
    return Object.assign(h("li", {}, link), {
      /** @param {import("./list.js").Story} story */
      update(story) {
        setText(title, titleOf(story));
        setText(host, story.hostName ?? "");
        setText(viewers, formatViewers(story.viewers ?? 0));
        if (id === feed.current?.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
        const { blurHash, url } = story.preview ?? {};
        const key = blurHash ?? id;
        const context = canvas.getContext("2d");
        if (key !== hash && isBlurHash(blurHash)) {
          context.putImageData(new ImageData(decodeBlurHash(blurHash, 18, 32), 18, 32), 0, 0);
        } else if (key !== hash) {
          paintCard(context, 18, 32, id);
        }
        hash = key;
        if (url && picture.getAttribute("src") !== url) picture.src = url;
      },
    });
  };

  const update = () => {
    if (!dialog.open) return;
    const { stories, count } = feed;
    $("empty").hidden = stories.length > 0;
    setText($("summary"), count === 0 ? "" : count === 1 ? "1 stream" : `${count} streams`);
    reconcile($("list"), stories.map((story) => [story.id, story]), make);
  };
  feed.addEventListener("change", update);
  $("menu-close").addEventListener("click", () => dialog.close());
  closeBeside(dialog);
  return {
    open() {
      if (!dialog.open) dialog.showModal();
      update();
      $("list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    },
  };
}
