/* rotation.c - conversions between forms of a rotation, in float64. */
#include "graph/transform/rotation.h"

#include <math.h>

/* Row-major. */
static void matrix_of(const double q[4], double m[9])
{
    double w = q[0], x = q[1], y = q[2], z = q[3];
    double s = 2.0 / (w * w + x * x + y * y + z * z);
    const double all[9] = {
        1.0 - s * (y * y + z * z), s * (x * y - z * w),       s * (x * z + y * w),
        s * (x * y + z * w),       1.0 - s * (x * x + z * z), s * (y * z - x * w),
        s * (x * z - y * w),       s * (y * z + x * w),       1.0 - s * (x * x + y * y)};
    for (int i = 0; i < 9; i++)
        m[i] = all[i];
}

void tec_rotation_quaternion_6d(const double from[4], double to[6])
{
    double m[9];
    matrix_of(from, m);
    for (int i = 0; i < 6; i++)
        to[i] = m[i];
}

void tec_rotation_rpy_6d(const double from[3], double to[6])
{
    double sa = sin(from[0]), ca = cos(from[0]), sb = sin(from[1]), cb = cos(from[1]);
    double sc = sin(from[2]), cc = cos(from[2]);
    const double rows[6] = {cb * cc, -cb * sc, sb, ca * sc + sa * sb * cc, ca * cc - sa * sb * sc,
                            -sa * cb};
    for (int i = 0; i < 6; i++)
        to[i] = rows[i];
}

void tec_rotation_axis_angle_rpy(const double from[3], double to[3])
{
    double angle = sqrt(from[0] * from[0] + from[1] * from[1] + from[2] * from[2]), m[9];
    /* sin(angle / 2) / angle, by its series where the quotient loses digits. */
    double share = angle < 1e-6 ? 0.5 - angle * angle / 48.0 : sin(0.5 * angle) / angle;
    const double q[4] = {cos(0.5 * angle), from[0] * share, from[1] * share, from[2] * share};
    matrix_of(q, m);
    double sine = m[2] < -1.0 ? -1.0 : m[2] > 1.0 ? 1.0 : m[2];
    to[0] = atan2(-m[5], m[8]);
    to[1] = asin(sine);
    to[2] = atan2(-m[1], m[0]);
}
