import Base

/// The streams that have sessions, by name, and which of them have a stage.
struct LiveStreamTable {
    private var streams: [StreamID: LiveStream] = [:]
    /// The streams with a stage, in the order in which they got one; may contain some whose stage is empty by now.
    private var stages: [StreamID] = []

    /// Nil for a stream without sessions.
    subscript(_ id: StreamID) -> LiveStream? {
        get { streams[id] }
        // In place: reading and writing back would copy the stream's sets.
        _modify { yield &streams[id] }
    }

    /// The streams that are unused, have lost their source or wait for another host's media, in an order that is the
    /// same in each run.
    var idle: [StreamID] {
        streams.filter { $0.value.isUnused || $0.value.emptySince != nil || $0.value.awaitsHost }
            .keys.sorted { $0.description < $1.description }
    }

    /// Adds a session to its stream, whatever its purpose.
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

    /// The streams with a stage, in the order in which they got one.
    mutating func staged() -> [StreamID] {
        stages.removeAll { streams[$0]?.room == nil }
        return stages
    }
}
