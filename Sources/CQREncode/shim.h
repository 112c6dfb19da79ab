/* Where libqrencode is comes from pkg-config. */
#include <qrencode.h>
