import Testing

@testable import Forwarding

@Suite struct `Receivers of a relayed track` {
    private var receivers = RelayReceivers()

    @Test mutating func `are each worker once, in order, whatever it needs the track for`() {
        #expect(receivers.all.isEmpty)
        receivers.setProgramme([3, 1])
        receivers.setSubscribed(true, by: 2)
        receivers.setSubscribed(true, by: 1)
        receivers.setSubscribed(true, by: 1)
        #expect(receivers.all == [1, 2, 3])
    }

    @Test mutating func `stay while one of their needs is left`() {
        receivers.setProgramme([1, 2])
        receivers.setSubscribed(true, by: 1)
        receivers.setProgramme([])
        #expect(receivers.all == [1])
        receivers.setProgramme([1])
        receivers.setSubscribed(false, by: 1)
        #expect(receivers.all == [1])
        receivers.setSubscribed(false, by: 1)
        receivers.setProgramme([])
        #expect(receivers.all.isEmpty)
    }
}
