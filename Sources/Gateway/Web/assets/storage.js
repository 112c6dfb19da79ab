// @ts-check

/**
 * Storage of the browser, for the tab or for all visits. Browsers that block cookies, and sandboxed frames, throw on
 * any access to their storage; then things are remembered until the page is closed.
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
  /** Items that could not be stored. @type {Map<string, string>} */
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

/** Storage that lasts as long as the tab. */
export const tabStorage = safe(() => sessionStorage);
/** Storage that lasts. */
export const lastingStorage = safe(() => localStorage);
