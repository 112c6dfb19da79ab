// @ts-check

/** The studio's page, for hosts and speakers. */

import { openPage } from "./page.js";

openPage("studio");
