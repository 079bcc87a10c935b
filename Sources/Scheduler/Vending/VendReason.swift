/// The reasons why a caller gets no token, or an older one, although its grant has not ended.
///
/// They appear in the fields `reason` and `warning` of answers, as do Google's error codes and the reasons of a grant
/// in `retrying`.
package enum VendReason: String, CaseIterable, Sendable {
    case timeout
    case tokenNotReplaced = "token_not_replaced"
    case refreshedTooOften = "refreshed_too_often"
    case justTried = "just_tried"
    case claimedElsewhere = "claimed_elsewhere"
    case notSent = "not_sent"
    case stopping
    case storeFailing = "store_failing"
    case breakerOpen = "breaker_open"
    case throttled
    case keyRing = "key_ring"
    case noAccessToken = "no_access_token"
}
