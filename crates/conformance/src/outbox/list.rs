//! Which cases there are for outboxes, each with what it needs: [`outbox_cases`] and the macros are made from this list.
//! A case that is not in it is dead code, and the compiler says so.

use super::{
    by_state as outbox_by_state, claim as outbox_claim, due as outbox_due,
    inspect as outbox_inspect, keys as outbox_keys, lag as outbox_lag, limit as outbox_limit,
    publish as outbox_publish, reopen as outbox_reopen, retain as outbox_retain,
    settle as outbox_settle, share as outbox_share, steer as outbox_steer,
    take_over as outbox_take_over, trouble as outbox_trouble, went_back as outbox_went_back,
};
use crate::OutboxCase;
use tidegate_core::outbox::{OutboxCapabilities, Reads, Relays};

fn every(_: &OutboxCapabilities) -> bool {
    true
}

/// It has ids that grow, and one cursor for each lane.
fn log(capabilities: &OutboxCapabilities) -> bool {
    capabilities.reads == Reads::Log
}

/// Whatever is pending is read, and each message is marked.
fn by_state(capabilities: &OutboxCapabilities) -> bool {
    capabilities.reads == Reads::ByState
}

/// Several relays have lanes at a time: a lane can be lost, and others not.
fn shared(capabilities: &OutboxCapabilities) -> bool {
    capabilities.relays == Relays::Many
}

/// Tidegate publishes, and refuses what cannot be held or is too much.
fn published(capabilities: &OutboxCapabilities) -> bool {
    capabilities.publishing.is_some()
}

/// It is read by state, and Tidegate publishes.
fn published_by_state(capabilities: &OutboxCapabilities) -> bool {
    by_state(capabilities) && published(capabilities)
}

/// What was sent can be removed.
fn retained(capabilities: &OutboxCapabilities) -> bool {
    capabilities.retention
}

/// All cases of outboxes, for every capability.
pub fn outbox_cases() -> Vec<OutboxCase> {
    crate::__each_outbox_case! { __outbox_cases () }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __each_outbox_case {
    ($then:ident $extra:tt) => {
        $crate::$then! { $extra
            outbox_publish:
                what_is_published_is_read_as_it_was(every),
                ids_grow_within_a_call_and_from_call_to_call(log),
                what_cannot_be_held_is_refused_and_nothing_is_stored(published),
                the_largest_that_can_be_held_is_held(published),
                a_delay_is_told_to_the_reader(log),
                a_key_has_one_lane_and_keys_spread_over_all(every),
                without_a_key_messages_spread_over_the_lanes(every),
                publishers_at_the_same_time_lose_nothing(every);
            outbox_limit:
                nothing_is_taken_while_too_many_are_outstanding(published),
                what_was_set_aside_is_outstanding_and_the_dead_are_not(published),
                outstanding_is_never_too_low(log);
            outbox_share:
                the_first_relay_gets_all_lanes(every),
                shares_are_even_as_relays_come_and_go(shared),
                relays_at_the_same_time_never_get_the_same_lane(shared),
                what_expired_goes_to_another_and_is_lost(every),
                what_expired_and_nobody_took_is_kept(every),
                a_settlement_leaves_leases_as_they_are(every),
                a_relay_that_starts_anew_under_its_name_goes_on(every),
                what_a_relay_does_not_know_of_is_free(shared),
                what_a_dead_relay_had_and_nobody_took_is_kept(shared),
                given_back_lanes_are_free_at_once(shared),
                what_arrives_after_a_lane_was_given_back_is_late(every),
                a_relay_that_ends_is_not_counted(every),
                nothing_to_give_back_or_settle_is_fine(every);
            outbox_claim:
                messages_are_read_in_order_and_reading_changes_nothing(every),
                only_what_is_behind_a_place_is_read(every),
                a_reader_takes_some_topics_and_leaves_others(every),
                patterns_mean_their_characters(every),
                a_reading_is_limited_by_count(every),
                a_reading_is_limited_by_bytes(every),
                read_to_covers_lanes_without_messages(every),
                readers_do_not_mind_each_other(every);
            outbox_lag:
                a_lag_is_taken_over_as_it_was(log),
                what_was_done_under_other_routes_is_taken_over(log),
                lags_replace_those_that_were_stored(log),
                what_lags_is_read_apart_from_the_rest(log),
                what_was_set_aside_beyond_a_lag_is_told(log);
            outbox_settle:
                cursors_move_on_and_never_back(log),
                late_lanes_change_nothing_while_others_apply(shared),
                a_late_copy_of_an_earlier_settlement_changes_nothing(every),
                what_was_dropped_is_not_set_aside_again(every),
                a_relay_that_lost_its_lanes_changes_nothing(every),
                an_expired_lane_that_nobody_took_is_settled(every),
                sent_again_it_changes_nothing(every),
                what_was_set_aside_is_not_read_again(every),
                a_retry_that_fails_again_counts_on(every),
                later_becomes_due_and_holds_nothing(every),
                a_thousand_are_set_aside_and_done_at_once(every);
            outbox_by_state:
                what_is_done_is_marked_whatever_is_before_it(by_state),
                what_was_read_comes_once_and_again_to_the_next(by_state),
                what_is_read_comes_behind_what_was_set_aside(by_state),
                a_copy_that_comes_late_undoes_no_decision(by_state),
                what_a_lost_lane_settles_keeps_what_was_set_aside(by_state),
                a_delayed_message_is_not_read_before_its_time(published_by_state);
            outbox_went_back:
                a_settlement_that_skips_a_number_is_refused(log),
                a_relay_that_starts_afresh_goes_on(log),
                another_epoch_is_noticed(log),
                lanes_of_another_epoch_are_not_renewed(log),
                a_settlement_of_lost_lanes_has_no_number(log);
            outbox_due:
                a_head_comes_with_some_of_those_behind_it(every),
                a_head_that_is_not_due_keeps_the_rest(every),
                what_is_tried_again_waits_for_those_before_it(every),
                a_head_brings_the_rest_up_to_one_that_holds_the_key(every),
                what_messages_waited_for_is_told(every),
                what_is_under_way_is_left_out(every),
                sinks_that_take_no_more_are_left_out(every),
                those_due_first_come_first_in_the_order_of_their_ids(every),
                next_due_is_the_soonest(every),
                due_messages_are_limited_by_bytes(every);
            outbox_keys:
                when_the_head_is_done_the_next_is_due(every),
                several_of_a_key_are_done_at_once(every),
                one_in_the_middle_is_done(every),
                a_dead_head_that_is_skipped_lets_the_next_go(every),
                a_dead_head_that_blocks_or_parks_keeps_the_rest(every),
                a_follower_comes_in_as_the_head_goes(every),
                heads_and_followers_come_in_together(every),
                an_older_one_comes_in_before_those_that_wait(every),
                what_has_nothing_to_wait_behind_is_due(every),
                keys_and_sinks_do_not_mind_each_other(every),
                a_head_that_goes_to_another_sink_lets_the_next_go(every);
            outbox_take_over:
                keys_that_wait_are_told(every),
                what_was_set_aside_beyond_the_cursor_is_told(log),
                what_had_no_route_finds_one(every),
                what_goes_to_another_sink_waits_there(every),
                a_found_route_keeps_the_order_of_its_key(every),
                renewing_leaves_what_was_set_aside_alone(every);
            outbox_inspect:
                status_counts_by_topic(every),
                a_topic_with_only_dead_has_no_oldest(every),
                what_is_parked_counts_as_dead(every),
                the_dead_are_grouped_most_first(every),
                what_was_set_aside_is_listed_by_choice_in_pages(every),
                a_message_is_found_whatever_became_of_it(every),
                a_text_is_no_id_where_messages_have_numbers(log);
            outbox_trouble:
                the_last_note_of_a_relay_counts(every),
                trouble_lasts_as_long_as_its_relay_says(every),
                relays_speak_for_themselves(every),
                a_relay_that_is_gone_is_not_believed(every);
            outbox_steer:
                a_retried_message_is_due_with_all_attempts_and_the_rest_follows(every),
                what_waits_behind_a_dropped_message_goes_on(every),
                dropped_while_nobody_has_the_lane_the_next_relay_goes_on(every),
                only_the_dead_among_the_chosen_are_changed(every),
                every_decision_leaves_an_audit_line(every),
                a_dropped_message_frees_no_other_key(every),
                a_decision_is_carried_out_page_by_page(every),
                a_page_passes_over_what_is_not_chosen(every),
                a_retried_message_goes_before_later_ones_of_its_key(every);
            outbox_retain:
                nothing_is_sealed_that_is_young_or_unread(retained),
                what_was_sent_is_sealed_read_and_discarded(retained),
                what_was_set_aside_stays_with_its_payload(retained),
                what_changed_since_must_be_sealed_again(log),
                what_comes_later_is_left_alone(retained),
                a_dropped_message_is_not_among_those_sent(retained),
                rounds_of_retention_lose_nothing(retained);
            outbox_reopen:
                what_was_published_and_settled_is_found_again(every),
                handles_share_the_lanes(shared);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __outbox_cases {
    (() $($area:ident: $($case:ident($applies:ident)),+;)+) => {
        vec![$($(OutboxCase {
            name: concat!(stringify!($area), "::", stringify!($case)),
            applies: $applies,
            run: |bench| Box::pin($area::$case(bench)),
        },)+)+]
    };
}

/// One test per case, run by `$check`.
#[doc(hidden)]
#[macro_export]
macro_rules! __outbox_tests {
    (($check:ident $fixture:expr) $($area:ident: $($case:ident($applies:ident)),+;)+) => {
        $(mod $area {
            use super::*;

            $(#[test]
            fn $case() {
                $crate::$check(concat!(stringify!($area), "::", stringify!($case)), $fixture);
            })+
        })+
    };
}
