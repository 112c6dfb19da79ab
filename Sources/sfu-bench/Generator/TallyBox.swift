/// Makes one tally of a thread writable by all of its clients.
final class TallyBox {
    var tally = Tally()
}
