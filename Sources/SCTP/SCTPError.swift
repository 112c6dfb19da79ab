/// Why an association could not be opened.
package enum SCTPError: Error, Equatable, Sendable {
    /// 65,535 associations are open.
    case tooManyAssociations
    /// usrsctp has not released the previous association at this address.
    case addressInUse
    /// A call into usrsctp failed; its name and `errno`.
    case library(String, CInt)
}

/// Why a message was not queued.
package enum SCTPSendError: Error, Equatable, Sendable {
    /// The association has ended.
    case closed
    /// The stream is not among those agreed on or is being reset, or the message is empty.
    case noStream
    /// Longer than `SCTPConfiguration.maximumMessage`.
    case tooLong
    /// The limits of the queue are reached.
    case bufferFull
}
