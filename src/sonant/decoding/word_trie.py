"""Words as a tree of letters, walked by many beams at once.

Node 0 is the empty word; node 1 stands for everything that leaves the tree, and is never left again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonant.decoding.ngram.integer_table import IntegerTable, build_table

ROOT, OFF = 0, 1
_DENSE_CELLS = 1 << 27  # 512 MB; wider alphabets with more words are looked up by a hash
_NO_WORD = -1


@dataclass(frozen=True, eq=False)
class WordTrie:
    num_letters: int
    words: np.ndarray  # (nodes,) int32: the word that ends here, -1 where none does
    parents: np.ndarray  # (nodes,) int32
    depths: np.ndarray  # (nodes,) int32: letters from the root
    _moves: np.ndarray | None  # (nodes * (letters + 2),) int32: the node behind each node and letter
    _table: IntegerTable | None

    def step(self, nodes: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """The nodes behind nodes and letters of one shape; the letter after the last one stays, -1 leaves the tree."""
        keys = nodes * (self.num_letters + 2) + letters
        if self._moves is not None:
            reached: np.ndarray = self._moves.take(keys + 1)
            return reached
        assert self._table is not None
        found = self._table.find(keys.ravel()).reshape(keys.shape)
        moved = np.where(found < 0, OFF, found + 2)
        return np.asarray(np.where(letters == self.num_letters, nodes, moved))

    def walk(self, nodes: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """The nodes behind several letters (..., longest)."""
        for place in range(letters.shape[-1]):
            nodes = self.step(nodes, letters[..., place])
        return nodes

    def highest_below(self, values: np.ndarray) -> np.ndarray:
        """The highest of the values (nodes,) at each node and in all that lies below it."""
        highest = values.copy()
        for depth in range(int(self.depths.max()), 0, -1):
            at_depth = np.flatnonzero(self.depths == depth)
            np.maximum.at(highest, self.parents[at_depth], highest[at_depth])
        return highest


def build_trie(spelled: np.ndarray, num_letters: int) -> WordTrie:
    """From the letters of words (N, longest), filled up with `num_letters`; a word with -1 in it has no node.

    Of two words that are spelled alike, the first is meant.
    """
    letters = np.concatenate([spelled, np.full((len(spelled), 1), num_letters, spelled.dtype)], axis=1)
    lengths = (letters != num_letters).sum(axis=1)
    can_be_written = (letters >= 0).all(axis=1) & (lengths > 0)
    nodes = np.where(can_be_written, ROOT, OFF).astype(np.int64)
    keys, parents, depths = [np.zeros(0, np.int64)], [np.array([ROOT, OFF])], [np.array([0, 0])]
    num_nodes = 2
    for place in range(letters.shape[1] - 1):
        growing = np.flatnonzero(can_be_written & (lengths > place))
        distinct, which = np.unique(nodes[growing] * (num_letters + 2) + letters[growing, place], return_inverse=True)
        nodes[growing] = num_nodes + which
        keys.append(distinct)
        parents.append(distinct // (num_letters + 2))
        depths.append(np.full(len(distinct), place + 1))
        num_nodes += len(distinct)
    words = np.full(num_nodes, _NO_WORD, np.int32)
    words[nodes[::-1]] = np.arange(len(nodes), dtype=np.int32)[::-1]
    words[OFF] = _NO_WORD
    all_keys = np.concatenate(keys)
    moves, table = None, None
    if num_nodes * (num_letters + 2) <= _DENSE_CELLS:
        moves = _dense(all_keys, num_nodes, num_letters)
    else:
        table = build_table(all_keys)
    ancestry = np.concatenate(parents).astype(np.int32), np.concatenate(depths).astype(np.int32)
    return WordTrie(num_letters, words, *ancestry, moves, table)


def _dense(keys: np.ndarray, num_nodes: int, num_letters: int) -> np.ndarray:
    """By node: the letter -1, every letter, and the one that stays."""
    moves = np.full((num_nodes, num_letters + 2), OFF, np.int32)
    moves.reshape(-1)[keys + 1] = np.arange(2, num_nodes, dtype=np.int32)
    moves[:, -1] = np.arange(num_nodes)
    return moves.reshape(-1)
