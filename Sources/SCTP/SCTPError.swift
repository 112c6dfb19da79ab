/// Why an association could not be made.
package enum SCTPError: Error, Equatable, Sendable {
    /// 65,535 associations are open.
    case tooManyAssociations
    /// usrsctp still holds on to what used the address before.
    case addressInUse
    /// usrsctp refused a call; the code is an `errno`.
    case library(String, CInt)
}

/// Why a message was not taken.
package enum SCTPSendError: Error, Equatable, Sendable {
    /// The association has ended.
    case closed
    /// The peer accepts no such stream, or it is being reset.
    case noStream
    /// Longer than `SCTPConfiguration.maximumMessage`.
    case tooLong
    /// As much waits as may wait; nothing was taken.
    case bufferFull
}
