import Base

/// A point of virtual time, in milliseconds since it began.
func at(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}
