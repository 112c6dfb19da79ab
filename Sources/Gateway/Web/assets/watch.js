// @ts-check

/** The page for the audience. */

import { openPage } from "./page.js";

openPage("audience");
