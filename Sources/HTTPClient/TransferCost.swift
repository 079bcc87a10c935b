/// The connections opened, the body bytes sent and the body bytes received for one request.
struct TransferCost {
    var connections = 0
    var sent = 0
    var received = 0
}
