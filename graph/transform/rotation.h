/* rotation.h - steps that read a rotation in one form and write it in another. */
#ifndef TEC_GRAPH_TRANSFORM_ROTATION_H
#define TEC_GRAPH_TRANSFORM_ROTATION_H

/* A matrix's first two rows are its six numbers. Quaternions are w x y z, of any length but 0;
 * roll, pitch and yaw are Rx(roll) Ry(pitch) Rz(yaw); an axis times its angle. Each writes all of
 * `to`; the two may not overlap. */
void tec_rotation_quaternion_6d(const double from[4], double to[6]);
void tec_rotation_rpy_6d(const double from[3], double to[6]);
void tec_rotation_axis_angle_rpy(const double from[3], double to[3]);

#endif
