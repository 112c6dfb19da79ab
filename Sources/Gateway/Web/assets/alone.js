// @ts-check

/**
 * Runs an action unless it is running under the same name already, in this tab or in another one of this browser.
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} action
 * @returns {Promise<T | undefined>} undefined if it was not run
 */
export async function alone(name, action) {
  let isDecided = false;
  try {
    return await navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      isDecided = true;
      return lock ? action() : undefined;
    });
  } catch (error) {
    if (isDecided) throw error;
    // Insecure pages have no locks, nor have those for which the browser keeps nothing.
    return action();
  }
}
