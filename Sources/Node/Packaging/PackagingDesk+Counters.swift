extension PackagingDesk {
    /// Counts for monitoring: gauges of the present, and totals since the start.
    package struct Counters: Equatable, Sendable {
        /// Renditions that are packaged now.
        package var active = 0
        /// Those of them whose video is passed on as its publisher encoded it.
        package var passed = 0
        /// Those of them that are smaller, or without video, for slow links.
        package var reduced = 0
        /// Streams that are watched by HLS.
        package var watched = 0
        /// Requests that wait for a part, segment or file now.
        package var waiting = 0
        /// Bytes of segments in memory.
        package var bytes = 0
        /// Renditions of which HLS was started.
        package var started: UInt64 = 0
        /// Renditions that were refused because the maximum number of streams was reached.
        package var refused: UInt64 = 0
        /// Jobs that ended because the transcoder died or could not go on; each is started again.
        package var lost: UInt64 = 0
        /// Parts that the transcoder has reported.
        package var parts: UInt64 = 0
        /// Renditions with a window on disk, which only sources have.
        package var kept = 0
        /// Bytes of segments on disk.
        package var storedBytes = 0
        /// Segments that could not be written to disk.
        package var notStored: UInt64 = 0
    }
}
