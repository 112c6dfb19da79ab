import Base

/// Where a reader of the feed is: what it asks the next page with.
///
/// Names a frozen order and an offset in it, and the latest stream of those that went live since that the reader has
/// been given. A text for strangers to keep: parsed strictly, at most 80 characters, one spelling for each cursor. It
/// is no secret and needs no seal, because whatever one makes up leads to some part of a list one may read anyway.
package struct FeedCursor: Equatable, Sendable, CustomStringConvertible {
    /// In characters; longer texts are no cursors.
    package static let lengthLimit = 80

    /// Of the process that made it: another one's epochs and serials mean something else.
    let tag: UInt32
    let epoch: UInt64
    /// The first place of the frozen order that was not looked at.
    var offset: UInt32
    /// Streams that went live after the epoch, up to this one, were given.
    var newest: UInt64
    /// Items given so far; only numbers the next ones.
    var given: UInt32

    init(tag: UInt32, epoch: UInt64, offset: UInt32, newest: UInt64, given: UInt32) {
        self.tag = tag
        self.epoch = epoch
        self.offset = offset
        self.newest = newest
        self.given = given
    }

    /// - Returns: nil for anything that is not the exact text of a cursor.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Self.lengthLimit else { return nil }
        var fields: [UInt64] = []
        for part in text.split(separator: ".", omittingEmptySubsequences: false) {
            // `UInt64` also takes signs and capitals.
            guard fields.count < 5, part.utf8.allSatisfy(Self.isDigit), let field = UInt64(part, radix: 36)
            else { return nil }
            fields.append(field)
        }
        guard fields.count == 5, let tag = UInt32(exactly: fields[0]),
            let offset = UInt32(exactly: fields[2]),
            let given = UInt32(exactly: fields[4])
        else { return nil }
        self.init(tag: tag, epoch: fields[1], offset: offset, newest: fields[3], given: given)
        guard description == text else { return nil }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// Five numbers in base 36 with dots between.
    package var description: String {
        [UInt64(tag), epoch, UInt64(offset), newest, UInt64(given)]
            .map { String($0, radix: 36) }.joined(separator: ".")
    }
}

/// Why a cursor leads nowhere; the reader begins anew.
package enum CursorRefusal: Error, Equatable, Sendable {
    /// Its order is not kept any more.
    case expired
    /// Never given to anybody.
    case unknown
}

/// A part of the feed.
package struct FeedPage: Equatable, Sendable {
    /// One line of the list.
    package struct Entry: Equatable, Sendable {
        /// From 0, counted over all the reader's pages.
        package let position: Int
        /// As it is now, whatever the order was frozen at.
        package let item: FeedItem
    }

    /// At most as many as were asked for; fewer at the end.
    package let entries: [Entry]
    /// Asks for what follows; after the last page, for what has gone live since.
    package let next: FeedCursor
    /// Whether nothing follows now.
    package let isLast: Bool
    /// Differs when anything on the page does; for an entity tag.
    package let fingerprint: UInt64
}
