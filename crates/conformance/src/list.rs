//! Which cases there are, in one place: [`cases`] and [`conformance!`](crate::conformance) are both
//! made from this list. A case that is not in it is dead code, and the compiler says so.

use crate::{
    Case, chain, claim, claim_retries, finalize, inspect, migrate, pace, renew, reopen, settle,
    settle_races, steer, submit, suspects,
};
use tidegate_core::source::Capabilities;

fn every(_: &Capabilities) -> bool {
    true
}

fn durable(capabilities: &Capabilities) -> bool {
    capabilities.durable
}

/// All cases, for every capability.
pub fn cases() -> Vec<Case> {
    crate::__each_case! { __cases () }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __each_case {
    ($then:ident $extra:tt) => {
        $crate::$then! { $extra
            migrate(every):
                twice_is_fine_and_keeps_the_content,
                by_many_at_once;
            pace(every):
                a_worker_writes_over_its_own_note,
                notes_are_found_by_batch_and_by_sink;
            submit(every):
                a_batch_is_stored_as_it_was_submitted,
                there_is_one_batch_of_a_workload_that_is_submitted_once,
                every_seed_survives,
                one_run_and_a_trillion_are_accepted,
                what_cannot_be_held_is_refused_and_not_stored,
                batches_share_a_snapshot_by_its_hash,
                strange_text_survives,
                a_large_snapshot_survives,
                ids_grow,
                concurrent_submissions_of_one_snapshot_all_succeed;
            claim(every):
                fresh_ranges_cover_every_run_once,
                concurrent_claimers_never_overlap,
                a_lease_that_lasts_is_not_claimed_again,
                expired_come_before_due_before_fresh,
                the_first_in_order_get_the_only_slot,
                an_expired_lease_goes_on_where_it_was_settled,
                a_small_batch_is_not_stuck_behind_a_huge_one,
                equal_batches_share_evenly,
                expired_leases_just_claimed_count_in_the_sharing,
                ranges_shrink_near_the_end,
                lengths_go_by_batch,
                only_the_workloads_asked_for_are_claimed,
                only_the_batch_asked_for_is_claimed,
                slots_bound_the_leases,
                slots_bound_retries_and_expired_too,
                the_answer_has_the_batches_and_unknown_snapshots_of_its_leases,
                open_and_settled_count_what_is_asked_for,
                next_due_is_the_next_expiry_or_retry,
                fences_grow,
                many_small_batches_are_claimed_together;
            claim_retries(every):
                due_retries_are_grouped_and_leased_once,
                concurrent_claimers_share_retries_without_overlap,
                retries_that_are_not_due_are_not_claimed,
                an_expired_retry_lease_is_claimed_again,
                the_dead_are_not_claimed,
                retries_per_lease_are_bounded,
                due_retries_are_spread_over_the_slots;
            settle(every):
                everything_is_written,
                many_leases_of_many_batches_settle_together,
                a_range_is_settled_step_by_step,
                progress_renews_what_is_left,
                one_late_part_and_nothing_changes,
                every_late_part_is_named,
                a_worker_that_found_its_own_lost_lease_is_late_with_both,
                a_lost_retry_lease_is_late,
                an_expired_lease_that_nobody_took_is_not_lost,
                sent_again_it_is_applied_and_changes_nothing,
                a_retry_settlement_sent_again_is_applied,
                a_worker_overwrites_its_own_aggregates,
                a_range_that_does_not_fit_is_late,
                retries_that_are_not_leased_are_late,
                a_batch_that_is_not_there_is_late,
                a_retry_that_succeeds_is_no_exception_any_more,
                a_retry_that_fails_is_updated,
                the_rest_of_a_retry_lease_stays_held,
                pages_survive_to_the_letter,
                a_large_page_survives,
                a_thousand_failures_settle_at_once,
                indexes_beyond_32_bits_survive;
            chain(every):
                what_does_not_follow_the_last_one_is_forgotten,
                a_late_copy_of_an_earlier_settlement_is_not_applied,
                one_forgotten_batch_keeps_the_others_from_being_settled,
                begun_anew_it_counts_nothing_twice;
            suspects(every):
                a_range_that_was_lost_twice_is_leased_run_by_run,
                another_worker_may_have_another_suspect,
                a_suspect_delays_no_other_work,
                a_long_range_is_split_into_parts,
                a_run_that_ends_its_workers_is_given_up_alone,
                several_such_runs_in_several_batches_are_given_up_and_no_other,
                a_retry_that_ends_its_workers_is_given_up_alone,
                what_is_given_back_is_not_lost,
                a_worker_that_is_alive_takes_its_loss_back,
                a_lost_lease_and_the_next_one_are_given_back_together,
                a_suspect_whose_worker_is_alive_is_none,
                a_person_who_retries_a_lost_run_begins_anew;
            settle_races(every):
                of_settlers_with_one_fence_one_is_applied,
                one_settlement_sent_by_two_is_applied_once,
                a_settler_or_the_next_claimer_has_the_range_never_both,
                a_cancellation_comes_before_or_after_a_settlement,
                settlements_in_opposite_order_do_not_block_each_other;
            renew(every):
                a_renewed_lease_lasts,
                a_lease_lasts_as_long_as_the_renewal_says,
                retries_are_renewed,
                what_is_left_of_a_lease_is_renewed,
                lost_leases_are_named_and_the_others_renewed,
                a_lost_retry_lease_is_not_renewed,
                a_lost_lease_shortens_no_other,
                given_back_it_can_be_claimed_at_once,
                what_is_left_of_a_lease_is_given_back,
                given_back_and_claimed_by_another_it_is_lost,
                what_is_settled_or_unknown_is_passed_over,
                nothing_to_do_is_done;
            finalize(every):
                not_while_anything_is_outstanding,
                not_while_a_retry_is_held,
                a_settled_batch_is_closed_with_its_aggregates,
                once,
                once_by_many_at_the_same_time,
                the_settled_among_others,
                dead_runs_make_it_completed_with_failures,
                a_batch_without_any_success_is_closed,
                retried_it_is_finalized_anew,
                a_settlement_sent_again_after_the_end_is_applied,
                a_worker_that_goes_on_after_a_retry_counts_nothing_twice,
                not_a_cancelled_batch,
                workers_that_lose_leases_finish_a_batch_once;
            steer(every):
                a_cancelled_batch_is_not_claimed,
                a_cancelled_batch_is_not_settled,
                what_was_settled_before_stays,
                a_cancellation_touches_no_other_batch,
                only_a_running_batch_is_cancelled,
                a_cancelled_batch_is_not_retried,
                without_dead_runs_a_retry_changes_nothing,
                a_running_batch_is_retried_while_it_runs,
                dead_runs_are_retried_in_pages,
                a_retried_run_keeps_its_reason_and_starts_to_count_anew;
            inspect(every):
                batches_are_listed_newest_first_in_pages,
                batches_are_listed_by_state,
                exceptions_are_listed_in_pages,
                pages_are_listed_by_their_lowest_index,
                progress_always_adds_up,
                what_was_given_back_is_leased_by_nobody,
                aggregates_are_seen_while_a_batch_runs,
                what_is_not_there_is_empty;
            reopen(durable):
                what_is_settled_is_found_again,
                fences_go_on_growing,
                handles_share_a_batch_without_overlap;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    (() $($area:ident($applies:ident): $($case:ident),+;)+) => {
        vec![$($(Case {
            name: concat!(stringify!($area), "::", stringify!($case)),
            applies: $applies,
            run: |bench| Box::pin($area::$case(bench)),
        },)+)+]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    (($fixture:expr) $($area:ident($applies:ident): $($case:ident),+;)+) => {
        $(mod $area {
            use super::*;

            $(#[test]
            fn $case() {
                $crate::check(concat!(stringify!($area), "::", stringify!($case)), $fixture);
            })+
        })+

        #[test]
        fn differential() {
            $crate::differential($fixture);
        }
    };
}
