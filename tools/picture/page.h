/* page.h - the style and the script of HTML pages, from the files in page/, which are built in. */
#ifndef TEC_TOOLS_PICTURE_PAGE_H
#define TEC_TOOLS_PICTURE_PAGE_H

extern const char tec_page_style[], tec_page_script[]; /* of a pipeline: graph_html.c */
extern const char tec_view_style[], tec_view_script[]; /* of a robot's frames: view_page.c */
extern const char tec_sides_style[];                   /* of two sides: sides.c */

#endif
