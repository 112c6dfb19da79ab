import Base
import Restream
import Stage

/// Where the stream's programme goes on to.
extension StreamHost {
    /// Remembers a target.
    /// - Returns: it, once it is durable.
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

    /// Forgets a target.
    func removeRestream(_ number: Int) async throws(RestreamRefusal) {
        try requireOpen()
        guard restreams.remove(number) else { throw .unknown }
        try await keepRestreams()
        sync.tellRestream(.object(["number": .integer(number), "state": .string("removed")]), to: committed)
    }

    /// Tells the host how a target does.
    func tellRestream(_ restream: JSON) { sync.tellRestream(restream, to: committed) }

    private func requireOpen() throws(RestreamRefusal) {
        guard !isClosed, hasRoomToGather else { throw .stage(.overloaded) }
        guard let stage else { throw .stage(.unknownStream) }
        guard stage.record.phase != .ended else { throw .stage(.rejected(.ended)) }
    }

    private func keepRestreams() async throws(RestreamRefusal) {
        enter([.restreams(restreams)])
        do throws(StageRefusal) {
            try await settled()
        } catch {
            throw .stage(error)
        }
    }
}

extension SyncHub {
    fileprivate mutating func tellRestream(_ restream: JSON, to record: StageRecord?) {
        guard let host = record?.host else { return }
        tell(SyncNotice.restream.text(["restream": restream]), to: host)
    }
}
