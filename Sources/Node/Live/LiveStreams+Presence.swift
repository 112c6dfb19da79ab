import Base

/// Who is present in a stream, for a stage that has to learn it anew.
extension LiveStreams {
    /// What a stream's stage was told of the sessions that it has now, for a new host in place of one that has closed.
    func presence(in stream: StreamID) -> [StageNotice] {
        var notices: [StageNotice] = []
        let known = (self[stream]?.all ?? []).compactMap { sessions[$0] }.sorted { $0.order < $1.order }
        for record in known where record.connection != nil {
            notices.append(.connect(record.request.sender, record.id))
        }
        for viewer in feed.told(in: stream) { notices.append(.connect(viewer.sender, viewer.session)) }
        if let publisher = self[stream]?.publisher, let record = sessions[publisher] {
            notices.append(.setSource(record.source))
        }
        return notices
    }
}
