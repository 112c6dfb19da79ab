import Base

/// A reader's position in the feed, sent along with the request for the next page.
///
/// It names a frozen order and an offset in it, and the latest stream given to the reader of those that went live
/// since. Clients keep it as text, so it is parsed strictly: at most 80 characters, and one spelling for each cursor.
/// It is neither secret nor sealed, because a forged cursor only leads to some part of a list that its sender may
/// read anyway.
package struct FeedCursor: Equatable, Sendable, CustomStringConvertible {
    /// In characters; a longer text is not a cursor.
    package static let lengthLimit = 80

    /// Identifies the process that made it: another process numbers its epochs and serials differently.
    let tag: UInt32
    /// The number of the frozen order that the reader follows.
    let epoch: UInt64
    /// Index of the first entry of the frozen order that has not been looked at.
    var offset: UInt32
    /// Serial of the latest stream given, or passed over, among those that went live after the epoch was frozen.
    var newest: UInt64
    /// Number of items given so far; used only to number the next ones.
    var given: UInt32

    init(tag: UInt32, epoch: UInt64, offset: UInt32, newest: UInt64, given: UInt32) {
        self.tag = tag
        self.epoch = epoch
        self.offset = offset
        self.newest = newest
        self.given = given
    }

    /// Parses the text of a cursor.
    /// - Returns: nil for anything but the exact text of a cursor.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Self.lengthLimit else { return nil }
        var fields: [UInt64] = []
        for part in text.split(separator: ".", omittingEmptySubsequences: false) {
            // `UInt64` also accepts signs and capital letters.
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

    /// Five numbers in base 36, separated by dots.
    package var description: String {
        [UInt64(tag), epoch, UInt64(offset), newest, UInt64(given)]
            .map { String($0, radix: 36) }.joined(separator: ".")
    }
}

/// Why a cursor is refused; the reader has to start again from the first page.
package enum CursorRefusal: Error, Equatable, Sendable {
    /// Its frozen order is no longer kept, or another process made it.
    case expired
    /// The server never issued this cursor.
    case unknown
}

/// One page of the feed.
package struct FeedPage: Equatable, Sendable {
    /// One stream on the page.
    package struct Entry: Equatable, Sendable {
        /// Counted from 0 over all pages that the reader was given.
        package let position: Int
        /// The item in its present state, not as it was when the order was frozen.
        package let item: FeedItem
    }

    /// At most as many as requested; fewer at the end of the list.
    package let entries: [Entry]
    /// The cursor of the next page; after the last page, of streams that have gone live since.
    package let next: FeedCursor
    /// Whether it is the last page at present.
    package let isLast: Bool
    /// A hash that changes with anything on the page; used as its entity tag.
    package let fingerprint: UInt64
}
