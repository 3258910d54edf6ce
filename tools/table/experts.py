"""Scripted experts of the five skills and of waiting: a function of the scene, without a memory, from any state of the rest.

Each goes up, over and down: away from its place it rises to a height that clears everything and moves sideways only as far
as it has risen. When its thing is as it should be, it lifts the hand and says so; a button is held down.
"""
import numpy as np

import goals
from scene import HOME

CLEAR = 0.27            # metres, height of the hand that clears a drawer and a faucet
CLEAR_BUTTON = 0.38
LIFTED = 0.27           # where a hand waits that has done its work
ARM = 0.15              # metres from the faucet's axis at which its handle is pushed
HANDLE = 0.125          # its height
SURE = 1.0              # radians from which a faucet counts as turned where no hand is at it
TURNED = 1.15           # radians to which a hand turns it: an arm that says a little early that it is closed says what is so


def towards(hand, goal, gain=25.0):
    return np.clip(gain * (goal - hand), -1, 1)


def over(hand, goal, clear):
    """Up, over, down: the motion to a place that is reached from above; None there."""
    off = np.linalg.norm(goal[:2] - hand[:2])
    if off < 0.02:
        return towards(hand, goal) if hand[2] > goal[2] + 0.02 else None
    height = goal[2] + min(clear - goal[2], max(0.0, (off - 0.02) * 4))
    move = towards(hand, np.append(goal[:2], height))
    risen = np.clip((hand[2] - height + 0.08) / 0.05, 0, 1)
    move[:2] *= risen
    return move


def lifted(hand):
    return towards(hand, np.append(hand[:2], max(hand[2], LIFTED)))


def button(table, _):
    hand, top = table.hand(), table.data.body("button").xpos + [0, 0, 0.193]
    if np.linalg.norm(hand[:2] - top[:2]) < 0.03 and hand[2] < top[2] + 0.06:
        return towards(hand, top - [0, 0, 0.02]), 1, True
    return over(hand, np.append(top[:2], top[2] + 0.04), CLEAR_BUTTON), 1, False


def drawer_open(table, _):
    hand, bar = table.hand(), table.data.body("drawer_link").xpos + [0, -0.16, -0.02]
    x, y, z = hand - bar
    if abs(x) < 0.05 and -0.07 < y < 0.03 and z < 0.04:
        return towards(hand, bar + [0, -0.06, 0], 50.0), -1, True
    move = over(hand, bar, CLEAR)
    return (towards(hand, bar) if move is None else move), -1, False


def drawer_close(table, _):
    hand, bar = table.hand(), table.data.body("drawer_link").xpos + [0, -0.16, -0.02]
    x, y, z = hand - bar
    if abs(x) < 0.05 and -0.12 < y < -0.005 and z < 0.04:
        return towards(hand, bar), 1, True
    move = over(hand, bar + [0, -0.075, 0], CLEAR)
    return (towards(hand, bar) if move is None else move), 1, False


def faucet(table, sign):
    """`sign`: +1 opens. The handle is pushed at ARM from behind, along its circle."""
    hand, axis, angle = table.hand(), table.data.body("faucet").xpos, table.joint("faucet")
    at = lambda a: axis + [ARM * np.sin(a), -ARM * np.cos(a), HANDLE + 0.02]
    x, y, _ = hand - axis
    behind = sign * (angle - np.arctan2(x, -y))
    if 0.12 < behind < 0.6 and 0.09 < np.hypot(x, y) < 0.21 and hand[2] < HANDLE + 0.06:
        return towards(hand, at(angle + sign * 0.15)), 1, True
    move = over(hand, at(angle - sign * 0.36), CLEAR)
    return (towards(hand, at(angle)) if move is None else move), 1, False


DOES = {"press the button": (button, 0), "pull the drawer": (drawer_open, 0), "push the drawer": (drawer_close, 0),
        "open the faucet": (faucet, 1), "close the faucet": (faucet, -1)}


def is_done(table, skill):
    return table.is_state(goals.thing_of(skill), goals.MAKES.get(skill))


def is_sure(table, skill, touching):
    """Done, and a faucet with room to spare: this is when an expert says so and lifts the hand."""
    enough = TURNED if touching else SURE
    return is_done(table, skill) and (goals.thing_of(skill) != "faucet" or abs(table.joint("faucet")) >= enough)


def expert(table, skill):
    """-> action f32 [4], what the arm says in this state; `skill` is one of goals.SKILLS or goals.IDLE"""
    hand = table.hand()
    if skill == goals.IDLE:
        return np.append(over_home(hand), 1).astype(np.float32), goals.WAITING
    rule, argument = DOES[skill]
    move, grip, touching = rule(table, argument)
    if is_sure(table, skill, touching):
        if skill != "press the button":
            move = lifted(hand)
        return np.append(move, grip).astype(np.float32), goals.ENDED[skill]
    return np.append(move, grip).astype(np.float32), (goals.ACT if touching else goals.APPROACH)[skill]


def over_home(hand):
    move = towards(hand, HOME)
    move[:2] *= np.clip((hand[2] - 0.20) / 0.05, 0, 1)
    return move
