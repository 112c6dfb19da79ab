extension Int {
    /// This many seconds, as people are told to wait: `1 second`, `2 seconds`.
    package var inSeconds: String { self == 1 ? "1 second" : "\(self) seconds" }
}
