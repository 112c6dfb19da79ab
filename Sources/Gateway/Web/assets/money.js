// @ts-check

/** Prices in words. */

/**
 * A sum as people write it; of an app's own currency, the number and its name.
 * @param {number} amount in the currency's smallest unit
 * @param {string} currency
 */
export function formatPrice(amount, currency) {
  if (!isKnownCurrency(currency)) return `${amount} ${currency}`;
  const format = new Intl.NumberFormat(undefined, { style: "currency", currency });
  return format.format(amount / 10 ** fractionDigits(currency));
}

/** How many digits a price has behind its point; none for an app's own coins. @param {string} currency */
export function fractionDigits(currency) {
  if (!isKnownCurrency(currency)) return 0;
  return new Intl.NumberFormat(undefined, { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/** Whether it is written as ISO 4217 has them. @param {string} currency */
const isKnownCurrency = (currency) => /^[A-Z]{3}$/.test(currency);
