import Stage

/// Who is present in a stream, for a stage that has to learn it anew.
extension LiveStreams {
    /// What a stream's stage was told of the sessions that it has now, for a new host in place of one that has closed.
    func presence(in stream: StreamID) -> [StageNotice] {
        guard let present = self[stream] else { return feedPresence(in: stream) }
        let connected = present.all.compactMap { sessions[$0] }.filter { $0.connection != nil }
            .sorted { $0.order < $1.order }
        let source = present.publisher.flatMap { sessions[$0]?.source }
        return connected.map { .connect($0.request.sender, $0.id) } + feedPresence(in: stream)
            + (source.map { [.setSource($0)] } ?? [])
    }

    private func feedPresence(in stream: StreamID) -> [StageNotice] {
        feed.told(in: stream).map { .connect($0.sender, $0.session) }
    }
}
