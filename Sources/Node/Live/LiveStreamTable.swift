import Base

/// The streams that have sessions, by name, and which of them have a stage.
struct LiveStreamTable {
    private var streams: [StreamID: LiveStream] = [:]
    /// Those with a stage, and those whose last session has left it since, in the order in which they came to have one.
    private var stages: [StreamID] = []

    /// Nil for a stream that nobody has a session in.
    subscript(_ id: StreamID) -> LiveStream? {
        get { streams[id] }
        // In place, so that nothing of a stream is copied.
        _modify { yield &streams[id] }
    }

    /// Those that nobody needs, or that have lost their source, in an order that is the same in each run.
    var idle: [StreamID] {
        streams.compactMap { $0.value.isUnused || $0.value.emptySince != nil ? $0.key : nil }
            .sorted { $0.description < $1.description }
    }

    /// Takes a session in, whatever it is.
    mutating func add(_ record: SessionRecord) {
        let hadStage = streams[record.stream]?.room != nil
        streams[record.stream, default: LiveStream()].add(record)
        guard record.request.isOnStage, !hadStage, !stages.contains(record.stream) else { return }
        stages.append(record.stream)
    }

    /// Makes a session the source of its stream.
    mutating func setSource(_ session: SessionID, of stream: StreamID) {
        streams[stream, default: LiveStream()].setSource(session)
    }

    /// - Returns: those with a stage, in the order in which they came to have one; forgets the others among them.
    mutating func staged() -> [StreamID] {
        stages.removeAll { streams[$0]?.room == nil }
        return stages
    }
}
