// @ts-check

/** The studio, for hosts and speakers. */

import { openPage } from "./page.js";

openPage("studio");
