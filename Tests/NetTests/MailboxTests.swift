import Base
import Net
import Testing

@Suite struct `A mailbox` {
    @Test func `hands over what came, in order, and says which command is the first`() {
        let mailbox = Mailbox<Int>(capacity: 10)
        #expect(mailbox.post(1) == .first)
        #expect(mailbox.post(2) == .queued)
        var batch: [Int] = []
        #expect(mailbox.swap(into: &batch))
        #expect(batch == [1, 2])
        batch.removeAll(keepingCapacity: true)
        #expect(mailbox.post(3) == .first)
        #expect(mailbox.swap(into: &batch))
        #expect(batch == [3])
    }

    @Test func `refuses the newest when full, but keeps room for what takes something away`() {
        let mailbox = Mailbox<Int>(capacity: 2)
        #expect(mailbox.post(1) == .first)
        #expect(mailbox.post(2) == .queued)
        #expect(mailbox.post(3) == .full)
        #expect(mailbox.post(4, isEssential: true) == .queued)
        #expect(mailbox.post(5, isEssential: true) == .queued)
        #expect(mailbox.post(6, isEssential: true) == .full)
        #expect(mailbox.refused == 2)
        var batch: [Int] = []
        #expect(mailbox.swap(into: &batch))
        #expect(batch == [1, 2, 4, 5])
    }

    @Test func `takes nothing more once it is closed, and gives out the last of it`() {
        let mailbox = Mailbox<Int>(capacity: 2)
        #expect(mailbox.post(1) == .first)
        mailbox.close()
        #expect(mailbox.post(2) == .closed)
        var batch: [Int] = []
        #expect(!mailbox.swap(into: &batch))
        #expect(batch == [1])
    }

    @Test func `loses nothing between threads`() async {
        let mailbox = Mailbox<Int>(capacity: 1_000_000)
        let senders = 4
        await withTaskGroup(of: Void.self) { group in
            for sender in 0..<senders {
                group.addTask {
                    for number in 0..<1_000 { _ = mailbox.post(sender * 1_000 + number) }
                }
            }
            await group.waitForAll()
        }
        var batch: [Int] = []
        _ = mailbox.swap(into: &batch)
        #expect(Set(batch).count == senders * 1_000)
        for sender in 0..<senders {
            let own = batch.filter { $0 / 1_000 == sender }
            #expect(own == own.sorted())
        }
    }
}
