import Base
import Stage

/// Which sessions an operator looks for; a criterion that is nil matches all sessions, and all others must match.
package struct SessionFilter: Sendable {
    /// A part of the stream's name.
    package var stream: String?
    /// A part of a participant's identity or name.
    package var identity: String?
    /// The beginning of the session's id.
    package var id: String?
    /// The beginning of the address of the client's request or of its media.
    package var address: String?
    /// Text that must match any of the four criteria above.
    package var search: String?
    /// Whether to list sessions that ended lately, instead of those that are open.
    package var isEnded = false
    /// Only sessions with a lower `order` than this: the place where the previous page ended.
    package var before: UInt64?
    /// The largest number of sessions on a page.
    package var limit = 50

    package init() {}

    /// Whether a session meets all criteria; `isEnded` and `limit` are up to the caller.
    func matches(_ record: SessionRecord) -> Bool {
        if let before, record.order >= before { return false }
        if let stream, !isStream(stream, of: record) { return false }
        if let identity, !isIdentity(identity, of: record) { return false }
        if let id, !isID(id, of: record) { return false }
        if let address, !isAddress(address, of: record) { return false }
        guard let search else { return true }
        return isStream(search, of: record) || isIdentity(search, of: record) || isID(search, of: record)
            || isAddress(search, of: record)
    }

    private func isStream(_ text: String, of record: SessionRecord) -> Bool {
        record.purpose != .feed && record.stream.description.holds(text)
    }

    private func isIdentity(_ text: String, of record: SessionRecord) -> Bool {
        record.request.participant?.description.holds(text) == true
            || record.request.name?.holds(text) == true
    }

    private func isID(_ text: String, of record: SessionRecord) -> Bool {
        !text.isEmpty && record.id.description.hasPrefix(text.lowercased())
    }

    private func isAddress(_ text: String, of record: SessionRecord) -> Bool {
        let addresses = [record.request.clientAddress?.description, record.clientMediaAddress?.description]
        return addresses.contains { $0?.hasPrefix(text) == true }
    }
}

extension String {
    /// Whether it contains a text, regardless of case.
    fileprivate func holds(_ text: String) -> Bool { lowercased().contains(text.lowercased()) }
}
