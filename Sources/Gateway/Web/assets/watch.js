// @ts-check

/** The audience's page. */

import { openPage } from "./page.js";

openPage("audience");
