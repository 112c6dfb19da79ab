import Peer
import Wire

/// Leaves a source's higher temporal and spatial layers out of what one receiver gets, in such a way that it notices
/// nothing.
///
/// The sequence numbers of what is left out are closed, and for VP8 its picture ids. While a packet is missing nobody
/// knows which layer it belongs to: it keeps its number, and if it turns out that it was to be left out, a packet
/// without payload fills the place. A layer is left out from the beginning of a picture on, and taken in again where
/// the source says that this is possible: spatial layers at a key frame alone, because those of another picture need
/// what was left out before. The last packet that is sent of a picture has the marker bit, or the receiver would wait
/// for the rest. All of it follows from the packets' numbers, so that a packet that is asked for again is the same as
/// it was.
///
/// AV1 counts frames instead of pictures, of which each spatial layer is one: between two pictures as many are missing
/// as the source has higher layers. Its numbers are left as they are: descriptors name what they need by distance.
///
/// A class, because segments that are read for each packet share it.
/// - Source: RFC 7741 §4.2 (TID, Y, TL0PICIDX), RFC 9628 §4.1 (marker), §4.2 (TID, U, SID, E); RFC 3550 §5.1; RTP
///   Payload Format for AV1 §4.2 (marker), appendix A.8.2 (`frame_number`).
package final class FrameSieve {
    enum Verdict: Equatable {
        case send
        /// Sent with the marker bit: the rest of the picture is left out.
        case sendLast
        /// Its place was kept: an empty packet fills it.
        case fill
        case leaveOut
    }

    /// What was left out until somewhere.
    struct Omissions: Equatable {
        var packets: Int64 = 0
        var pictures: UInt16 = 0
    }

    /// Packets that follow each other and were left out.
    private struct Run {
        let start: Int64
        var end: Int64
        /// Until its end, those before it included.
        var omissions: Omissions
    }

    /// What is known of the newest packet.
    private struct Newest {
        var sequence: Int64
        var timestamp: UInt32 = 0
        var endsPicture = false
        /// Whether all that comes of the same picture is left out, too.
        var isFollowedByNothing = false
        var isLeftOut = false
        var pictures = PictureNumbers()
        var spatial: UInt8 = 0
    }

    /// The highest layers that are sent.
    struct Limit: Equatable {
        var temporal = UInt8.max
        var spatial = UInt8.max

        fileprivate func leavesOut(_ layers: LayerPlace) -> Bool {
            layers.temporal > temporal || layers.spatial > spatial
        }

        /// What a packet is sent as that belongs to these layers.
        fileprivate func form(of packet: ForwardedPacket) -> Verdict {
            let layers = packet.layers
            return layers.endsSpatialLayer && layers.spatial == spatial && !packet.marker ? .sendLast : .send
        }
    }

    /// What the receiver is to get, as soon as that is possible.
    var target = Limit()
    /// What is sent now.
    private(set) var limit = Limit()
    /// The latest changes of `limit`, oldest first.
    private var changes: [(from: Int64, limit: Limit)] = []
    /// Oldest first; what came before the first one's end is no longer known.
    private var runs: [Run] = []
    private var newest: Newest
    /// Whether the source tells where layers may be taken in again; else all of it is sent.
    private var isSure: Bool
    /// Whether all layers may be taken in with the next picture.
    private var isOpen = false
    /// The highest spatial layer of the latest picture whose end was followed by the next one; nil before.
    private var top: UInt8?

    /// Of 30 pictures a second in two layers, more than eight seconds.
    private static let runLimit = 128
    private static let changeLimit = 8

    /// - Parameters:
    ///   - first: the first packet that belongs to the segment.
    ///   - last: the newest one that was sent before the sieve was there.
    init(from first: Int64, after last: Int64, isSure: Bool) {
        newest = Newest(sequence: last)
        self.isSure = isSure
        runs.reserveCapacity(Self.runLimit)
        changes.reserveCapacity(Self.changeLimit)
        runs.append(Run(start: first, end: first, omissions: Omissions()))
    }

    /// Goes on as another one does, behind a gap.
    ///
    /// - Parameter first: the first packet that belongs to the new segment.
    init(continuing other: FrameSieve, from first: Int64) {
        newest = Newest(sequence: first &- 1)
        isSure = other.isSure
        (target, limit) = (other.target, other.limit)
        runs.reserveCapacity(Self.runLimit)
        changes.reserveCapacity(Self.changeLimit)
        runs.append(Run(start: first, end: first, omissions: Omissions()))
        changes.append((first, limit))
    }

    /// Whether larger pictures are to be sent as soon as a key frame comes.
    var isWaitingForKeyFrame: Bool { target.spatial > limit.spatial }

    /// Decides on a packet that comes for the first time.
    func judge(_ packet: ForwardedPacket) -> Verdict {
        let sequence = packet.sequenceNumber
        guard sequence > newest.sequence else { return judgeLate(packet) }
        closeGap(before: packet)
        let layers = packet.layers
        if layers.startsPicture, sequence == newest.sequence &+ 1 { top = newest.spatial }
        if layers.startsPicture { adjustLimit(to: packet) }
        if layers.tellsWhereToSwitch { isSure = true }
        let isLeftOut = limit.leavesOut(layers)
        if layers.temporal > limit.temporal {
            isOpen = false
        } else if layers.opensHigherLayers, !isLeftOut {
            isOpen = true
        }
        if isLeftOut { leaveOut(sequence..<(sequence &+ 1), pictures: startsOmission(packet) ? 1 : 0) }
        let verdict = isLeftOut ? .leaveOut : limit.form(of: packet)
        newest = Newest(
            sequence: sequence, timestamp: packet.timestamp, endsPicture: packet.marker,
            isFollowedByNothing: verdict != .send, isLeftOut: isLeftOut, pictures: packet.pictures,
            spatial: layers.spatial)
        return verdict
    }

    /// As what a packet, which has a number, was sent or would have been; nil if that was too long ago.
    ///
    /// A guess would be dangerous: two different packets under one number are sealed with one nonce (RFC 7714 §8.1).
    func form(of packet: ForwardedPacket) -> Verdict? {
        guard let limit = limit(at: packet.sequenceNumber) else { return nil }
        return limit.leavesOut(packet.layers) ? .fill : limit.form(of: packet)
    }

    /// The highest spatial layer that is sent of the picture of a packet; nil if that was too long ago.
    func spatialLimit(at sequence: Int64) -> UInt8? { limit(at: sequence)?.spatial }

    /// Whether a packet that comes next will be sent, as far as that can be told before.
    func takes(_ packet: ForwardedPacket) -> Bool { !target.leavesOut(packet.layers) }

    /// What was left out before a packet; nil for one that is left out itself, or is too old to tell.
    func omissions(before sequence: Int64) -> Omissions? {
        var index = runs.count - 1
        while index >= 0 {
            let run = runs[index]
            if sequence >= run.end { return run.omissions }
            if sequence >= run.start { return nil }
            index -= 1
        }
        return nil
    }

    /// The packet that was sent with a number, both as the source would count if nothing was left out.
    func origin(of number: Int64) -> Int64? {
        var index = runs.count - 1
        while index >= 0 {
            let run = runs[index]
            let sequence = number &+ run.omissions.packets
            if sequence >= run.end { return sequence }
            index -= 1
        }
        return nil
    }

    // MARK: Deciding

    private func judgeLate(_ packet: ForwardedPacket) -> Verdict {
        guard omissions(before: packet.sequenceNumber) != nil else { return .leaveOut }
        return form(of: packet) ?? .leaveOut
    }

    private func limit(at sequence: Int64) -> Limit? {
        var index = changes.count - 1
        while index >= 0 {
            if sequence >= changes[index].from { return changes[index].limit }
            index -= 1
        }
        return changes.count < Self.changeLimit ? Limit() : nil
    }

    /// Changes what is sent from a picture on that begins with this packet.
    private func adjustLimit(to packet: ForwardedPacket) {
        var new = limit
        new.temporal = temporalLimit(from: packet)
        if target.spatial < limit.spatial || packet.startsKeyFrame { new.spatial = target.spatial }
        guard new != limit else { return }
        limit = new
        if changes.count == Self.changeLimit { changes.removeFirst() }
        changes.append((packet.sequenceNumber, new))
    }

    private func temporalLimit(from packet: ForwardedPacket) -> UInt8 {
        let layers = packet.layers
        if target.temporal < limit.temporal {
            return isSure || layers.tellsWhereToSwitch ? target.temporal : limit.temporal
        }
        if packet.startsKeyFrame || isOpen { return target.temporal }
        // One after the other: pictures of a layer need those of all below it.
        let isNext = layers.isSwitchingPoint && layers.temporal == limit.temporal &+ 1
        return isNext && target.temporal > limit.temporal ? layers.temporal : limit.temporal
    }

    // MARK: Leaving out

    /// Whether a packet that is left out is the first known one of its picture.
    private func startsOmission(_ packet: ForwardedPacket) -> Bool {
        guard packet.descriptor.isVP8, packet.pictures.pictureID != nil else { return false }
        return !newest.isLeftOut || newest.timestamp != packet.timestamp
    }

    /// Leaves out what is missing before a packet, where it can only belong to layers that are left out.
    private func closeGap(before packet: ForwardedPacket) {
        let missing = (newest.sequence &+ 1)..<packet.sequenceNumber
        guard !missing.isEmpty else { return }
        // Later pictures may need one of a higher layer among them, which is left out if it comes.
        isOpen = false
        // Spatial layers of a picture come one after the other, the largest last.
        if newest.isFollowedByNothing, newest.timestamp == packet.timestamp || follows(packet) {
            return leaveOut(missing, pictures: 0)
        }
        // VP8 counts pictures, and those of the lowest layer apart.
        let layers = packet.layers
        guard limit.temporal == 0, packet.descriptor.isVP8, newest.endsPicture,
            layers.startsPicture || layers.temporal > 0,
            let before = newest.pictures.pictureID, let after = packet.pictures.pictureID,
            let lowestBefore = newest.pictures.tl0PictureIndex,
            let lowestAfter = packet.pictures.tl0PictureIndex,
            lowestAfter &- lowestBefore == (layers.temporal == 0 ? 1 : 0)
        else { return }
        let pictures = (after &- before &- 1) & 0x7FFF
        guard pictures > 0 || !layers.startsPicture, Int(pictures) <= missing.count else { return }
        leaveOut(missing, pictures: pictures)
    }

    /// Whether a packet begins the very next picture, by VP9's count of them, or AV1's of their layers.
    private func follows(_ packet: ForwardedPacket) -> Bool {
        guard packet.layers.startsPicture, !packet.descriptor.isVP8 else { return false }
        if packet.codec == .av1 {
            guard let top, let before = newest.pictures.frameNumber, let after = packet.pictures.frameNumber
            else { return false }
            let missing = after &- before &- 1
            return missing == 0 || missing == UInt16(top) &- UInt16(min(newest.spatial, top))
        }
        guard let before = newest.pictures.pictureID, let after = packet.pictures.pictureID else {
            return false
        }
        return (after &- before) & 0x7FFF == 1
    }

    private func leaveOut(_ range: Range<Int64>, pictures: UInt16) {
        let last = runs.count - 1
        var omissions = runs[last].omissions
        omissions.packets &+= range.upperBound &- range.lowerBound
        omissions.pictures &+= pictures
        if runs[last].end == range.lowerBound, last > 0 {
            runs[last].end = range.upperBound
            runs[last].omissions = omissions
            return
        }
        if runs.count == Self.runLimit { runs.removeFirst() }
        runs.append(Run(start: range.lowerBound, end: range.upperBound, omissions: omissions))
    }
}
