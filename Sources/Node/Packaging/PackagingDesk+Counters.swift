extension PackagingDesk {
    /// What is counted.
    package struct Counters: Equatable, Sendable {
        /// Renditions under way now.
        package var active = 0
        /// Of them, those whose pictures are passed on as their publisher encoded them.
        package var passed = 0
        /// Of them, those that are made smaller or without pictures, for links that carry no more.
        package var reduced = 0
        /// Streams that are watched by HLS.
        package var watched = 0
        /// Requests that wait now.
        package var waiting = 0
        /// Bytes of segments in memory.
        package var bytes = 0
        package var started: UInt64 = 0
        /// Those that could not begin, because there were as many as may be.
        package var refused: UInt64 = 0
        /// Times that one went on in another job: its transcoder died.
        package var lost: UInt64 = 0
        package var parts: UInt64 = 0
        /// Streams that viewers can go back in.
        package var kept = 0
        /// Bytes of segments on the disk.
        package var storedBytes = 0
        /// Segments that could not be written there.
        package var notStored: UInt64 = 0
    }
}
