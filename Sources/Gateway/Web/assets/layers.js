// @ts-check

/**
 * Pages are made of widgets, and widgets lie in layers. A widget is a module with one export:
 *
 *     export const clock = {
 *       name: "clock",
 *       layer: "lite",
 *       mount(context, layer) {
 *         const root = h("p.clock");
 *         layer.append(root);
 *         return () => root.remove();
 *       },
 *     };
 *
 * `context` is the page's `Room`, which fires `change`; widgets are independent of each other. `mount` returns a
 * function that removes the widget. New widgets go into the list of the page. A stream's `layers` setting turns layers
 * off and on.
 */

/** From back to front. */
export const LAYERS = /** @type {const} */ (["background", "player", "movable", "lite", "float"]);

/**
 * @typedef {typeof LAYERS[number]} Layer
 *
 * @template Context
 * @typedef {object} Widget
 * @property {string} name
 * @property {Layer} layer
 * @property {(context: Context, layer: HTMLElement) => (() => void)} mount
 */

/**
 * Mounts and unmounts a page's widgets.
 * @template Context
 */
export class WidgetHost {
  /** @type {Map<Widget<Context>, () => void>} */
  #mounted = new Map();

  /**
   * @param {Record<Layer, HTMLElement>} layers
   * @param {Context} context
   */
  constructor(layers, context) {
    this.layers = layers;
    this.context = context;
  }

  /** Names of the mounted widgets. */
  get mounted() {
    return [...this.#mounted.keys()].map(({ name }) => name);
  }

  /**
   * Makes these the widgets of the page, in this order. Mounted ones stay as they are.
   * @param {Widget<Context>[]} widgets
   * @param {readonly string[]} on layers that are turned on
   */
  show(widgets, on = LAYERS) {
    const wanted = widgets.filter(({ layer }) => on.includes(layer));
    for (const widget of [...this.#mounted.keys()]) if (!wanted.includes(widget)) this.#unmount(widget);
    for (const [name, element] of Object.entries(this.layers)) element.hidden = !on.includes(name);
    for (const widget of wanted) if (!this.#mounted.has(widget)) this.#mount(widget);
  }

  /** @param {Widget<Context>} widget */
  #mount(widget) {
    try {
      this.#mounted.set(widget, widget.mount(this.context, this.layers[widget.layer]));
    } catch (error) {
      // A widget that fails must not affect the others.
      console.error(`widget ${widget.name}`, error);
    }
  }

  /** @param {Widget<Context>} widget */
  #unmount(widget) {
    const unmount = this.#mounted.get(widget);
    this.#mounted.delete(widget);
    try {
      unmount?.();
    } catch (error) {
      console.error(`widget ${widget.name}`, error);
    }
  }
}
