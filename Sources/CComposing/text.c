#include <pango/pangocairo.h>
#include <stdlib.h>
#include <string.h>
#include "CComposing.h"

static PangoLayout *line(cairo_t *context, const char *text, int size, int maximum_width) {
    PangoLayout *layout = pango_cairo_create_layout(context);
    PangoFontDescription *font = pango_font_description_from_string("DejaVu Sans, Sans Bold");
    pango_font_description_set_absolute_size(font, (double)size * PANGO_SCALE);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    pango_layout_set_single_paragraph_mode(layout, TRUE);
    pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
    pango_layout_set_text(layout, text, -1);
    int width, height;
    pango_layout_get_pixel_size(layout, &width, &height);
    if (width > maximum_width) pango_layout_set_width(layout, maximum_width * PANGO_SCALE);
    return layout;
}

uint8_t *ccomposing_text_draw(const char *text, int size, int maximum_width, int *width, int *height) {
    uint8_t *coverage = NULL;
    // Pango wants a surface to know its resolution; the size is known only afterwards.
    cairo_surface_t *probe = cairo_image_surface_create(CAIRO_FORMAT_A8, 8, 8);
    cairo_t *measuring = cairo_create(probe);
    PangoLayout *measured = line(measuring, text, size, maximum_width);
    pango_layout_get_pixel_size(measured, width, height);
    g_object_unref(measured);
    cairo_destroy(measuring);
    cairo_surface_destroy(probe);
    if (*width <= 0 || *height <= 0 || *width > 4096 || *height > 1024) return NULL;

    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, *width, *height);
    cairo_t *context = cairo_create(surface);
    PangoLayout *layout = line(context, text, size, maximum_width);
    cairo_set_source_rgba(context, 1, 1, 1, 1);
    pango_cairo_show_layout(context, layout);
    cairo_surface_flush(surface);
    if (cairo_status(context) == CAIRO_STATUS_SUCCESS && cairo_image_surface_get_data(surface)) {
        coverage = malloc((size_t)*width * (size_t)*height);
        const uint8_t *rows = cairo_image_surface_get_data(surface);
        int stride = cairo_image_surface_get_stride(surface);
        for (int y = 0; coverage && y < *height; y++)
            memcpy(coverage + (size_t)y * *width, rows + (size_t)y * stride, *width);
    }
    g_object_unref(layout);
    cairo_destroy(context);
    cairo_surface_destroy(surface);
    return coverage;
}

void ccomposing_text_free(uint8_t *coverage) { free(coverage); }
