/// The tally that all clients of one thread count into.
final class TallyBox {
    var tally = Tally()
}
