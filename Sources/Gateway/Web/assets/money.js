// @ts-check

/** Formats prices. */

/**
 * An amount with its currency; for an app's own currency, the number and the name.
 * @param {number} amount in the smallest unit of the currency
 * @param {string} currency
 */
export function formatPrice(amount, currency) {
  if (!isKnownCurrency(currency)) return `${amount} ${currency}`;
  const format = new Intl.NumberFormat(undefined, { style: "currency", currency });
  return format.format(amount / 10 ** fractionDigits(currency));
}

/** The number of decimals of a currency; none for an app's own. @param {string} currency */
export function fractionDigits(currency) {
  if (!isKnownCurrency(currency)) return 0;
  return new Intl.NumberFormat(undefined, { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/** Whether it has the form of an ISO 4217 code. @param {string} currency */
const isKnownCurrency = (currency) => /^[A-Z]{3}$/.test(currency);
