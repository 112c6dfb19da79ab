// @ts-check

/** The two documents that describe the API, with their references resolved. */

/** Names of HTTP methods in OpenAPI, in the order in which they are shown. */
const METHODS = ["get", "post", "put", "patch", "delete"];

/**
 * @typedef {any} JSONObject part of a document
 *
 * @typedef {object} Operation
 * @property {string} id
 * @property {string} method in capitals
 * @property {string} path
 * @property {string} tag
 * @property {JSONObject} spec
 * @property {JSONObject[]} parameters resolved, those of the path first
 *
 * @typedef {object} Message
 * @property {string} key
 * @property {"send" | "receive"} action from the server's point of view
 * @property {JSONObject} spec
 */

export class Documents {
  /** @type {Record<string, JSONObject>} */
  #documents = {};

  static async load() {
    const result = new Documents();
    await Promise.all(["openapi.json", "asyncapi.json"].map(async (name) => {
      const response = await fetch(`/v1/${name}`);
      if (!response.ok) throw new Error(`${name} returned status ${response.status}.`);
      result.#documents[name] = await response.json();
    }));
    return result;
  }

  get openAPI() {
    return new Part(this, "openapi.json", this.#documents["openapi.json"]);
  }

  get asyncAPI() {
    return new Part(this, "asyncapi.json", this.#documents["asyncapi.json"]);
  }

  /** @param {string} reference @param {string} from the document that contains it */
  part(reference, from) {
    const [file, pointer] = reference.split("#");
    const name = file || from;
    const value = pointer.split("/").slice(1).reduce((part, key) => part?.[key.replaceAll("~1", "/")], this.#documents[name]);
    return new Part(this, name, value, pointer.split("/").pop());
  }

  /** @returns {Operation[]} */
  get operations() {
    const { value } = this.openAPI;
    const result = [];
    for (const [path, item] of Object.entries(value.paths)) {
      for (const method of METHODS) {
        const spec = item[method];
        if (spec) result.push(this.#operation(path, method, item, spec));
      }
    }
    return result;
  }

  /** Webhooks: requests that the server sends. @returns {Operation[]} */
  get webhooks() {
    return Object.entries(this.openAPI.value.webhooks ?? {}).map(([, item]) =>
      this.#operation("your receiver", "post", item, item.post));
  }

  /** @param {string} path @param {string} method @param {JSONObject} item @param {JSONObject} spec @returns {Operation} */
  #operation(path, method, item, spec) {
    const parameters = [...item.parameters ?? [], ...spec.parameters ?? []].map((one) => this.openAPI.at(one).value);
    return { id: spec.operationId, method: method.toUpperCase(), path, tag: spec.tags?.[0] ?? "", spec, parameters };
  }

  /** The groups of operations, in order. @returns {{ name: string, description: string }[]} */
  get tags() {
    return this.openAPI.value.tags;
  }

  /** @returns {{ key: string, spec: JSONObject, messages: Message[] }[]} */
  get channels() {
    const { channels, operations } = this.asyncAPI.value;
    return Object.entries(channels).map(([key, spec]) => {
      const messages = Object.values(operations)
        .filter(({ channel }) => channel.$ref === `#/channels/${key}`)
        .flatMap(({ action, messages }) => messages.map((/** @type {JSONObject} */ { $ref }) => {
          const name = $ref.split("/").pop();
          return { key: name, action, spec: this.asyncAPI.at(spec.messages[name]).value };
        }));
      return { key, spec, messages };
    });
  }
}

/** A value in a document, whose references it can resolve. */
export class Part {
  /**
   * @param {Documents} documents
   * @param {string} document
   * @param {JSONObject} value
   * @param {string} [name] under which it was referenced
   */
  constructor(documents, document, value, name = "") {
    this.documents = documents;
    this.document = document;
    this.value = value;
    this.name = name;
  }

  /** Another value in the same document; a reference is resolved. @param {JSONObject} value @returns {Part} */
  at(value) {
    if (typeof value?.$ref === "string") {
      const target = this.documents.part(value.$ref, this.document);
      const found = target.at(target.value);
      return new Part(this.documents, found.document, found.value, found.name || target.name);
    }
    return new Part(this.documents, this.document, value);
  }
}
