// @ts-check

/**
 * What a page keeps in the browser: for its tab, or for all visits. Browsers that block cookies, and frames with a
 * sandbox, throw at the mere mention of their storage; then the page remembers things until it is closed.
 */

/**
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} Memory
 */

/**
 * A storage that never throws.
 * @param {() => Storage} storage
 * @returns {Memory}
 */
function safe(storage) {
  /** What could not be stored. @type {Map<string, string>} */
  const kept = new Map();
  return {
    getItem(key) {
      try {
        return kept.get(key) ?? storage().getItem(key);
      } catch {
        return kept.get(key) ?? null;
      }
    },
    setItem(key, value) {
      try {
        storage().setItem(key, value);
        kept.delete(key);
      } catch {
        kept.set(key, value);
      }
    },
    removeItem(key) {
      kept.delete(key);
      try {
        storage().removeItem(key);
      } catch {
        // There is nothing to remove.
      }
    },
  };
}

/** Lasts as long as the tab. */
export const tabStorage = safe(() => sessionStorage);
/** Lasts. */
export const lastingStorage = safe(() => localStorage);
