import Base
import Restream
import Stage

/// The targets to which the stream's programme is sent.
extension StreamHost {
    /// Adds a target.
    /// - Returns: the target, once it is durable.
    func addRestream(
        to address: RestreamAddress, key: Secret<String>
    ) async throws(RestreamRefusal) -> RestreamTarget {
        try requireOpen()
        let target: RestreamTarget
        do throws(RestreamList.Refusal) {
            target = try restreams.add(address, key: key)
        } catch {
            throw .list(error)
        }
        try await keepRestreams()
        return target
    }

    /// Removes a target with its key, and notifies the host once that is durable.
    func removeRestream(_ number: Int) async throws(RestreamRefusal) {
        try requireOpen()
        guard restreams.remove(number) else { throw .unknown }
        try await keepRestreams()
        sync.tellRestream(.object(["number": .integer(number), "state": .string("removed")]), to: committed)
    }

    /// Notifies the host of a target's state.
    func tellRestream(_ restream: JSON) { sync.tellRestream(restream, to: committed) }

    /// Targets belong to a stream that exists and has not ended.
    private func requireOpen() throws(RestreamRefusal) {
        guard !isClosed, hasRoomToGather else { throw .stage(.overloaded) }
        guard let stage else { throw .stage(.unknownStream) }
        guard stage.record.phase != .ended else { throw .stage(.rejected(.ended)) }
    }

    /// Makes the list durable as a whole.
    ///
    /// If the store fails, `fail` restores the durable list.
    private func keepRestreams() async throws(RestreamRefusal) {
        do throws(StageRefusal) {
            try enter([.restreams(restreams)])
            try await settled()
        } catch {
            throw .stage(error)
        }
    }
}

extension SyncHub {
    /// Only the host is notified, because the message contains the target's address.
    fileprivate mutating func tellRestream(_ restream: JSON, to record: StageRecord?) {
        guard let host = record?.host else { return }
        tell(SyncNotice.restream.text(["restream": restream]), to: host)
    }
}
