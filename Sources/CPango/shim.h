/* Where Pango and Cairo are comes from pkg-config. */
