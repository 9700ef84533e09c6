package io.ratelimit.sample;

import io.ratelimit.annotation.ActualCost;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Answers questions by a fake language model. The tokens of an answer are known only when it is there. */
@RestController
class AssistantController {

    private static final long TOKENS_PER_WORD = 1_200;

    @GetMapping("/api/assistant")
    Answer ask(@RequestParam String question, ActualCost cost) {
        Answer answer = new Answer("Have a cup of tea.", TOKENS_PER_WORD * question.split(" ").length);
        cost.settle("assistant", answer.totalTokens());
        return answer;
    }

    record Answer(String text, long totalTokens) {}
}
