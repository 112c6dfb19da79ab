// The target's first file takes this one's place.
